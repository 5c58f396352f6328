import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import Synchronization

/// A client that ended TLS with the proxy right after the handshake, before any request.
struct ClientDeparture {
    let client: KnownClient
    let source: Endpoint
    let traits: ClientTraits?
    let authority: Authority

    /// The log's text.
    static let cause =
        "the client ended TLS right after the handshake, before any request: it seems not to trust the proxy's "
        + "authority (sudo pinproxy ca install adds that to the system's trust store)"
}

/// Records which clients trust the proxy's authority, for all workers.
final class TrustWatch: Sendable {
    private struct State {
        var signs = TrustSigns()
        var told: [Program: Set<ClientAgent>] = [:]
    }

    /// Without the User-Agent, which the client chooses.
    private struct Program: Hashable {
        let claimant: Claimant
        let executable: String?

        init(_ client: KnownClient) { (claimant, executable) = (client.claimant, client.executable) }
    }

    /// Beyond it the same may be logged again.
    private static let toldLimit = 1024
    /// Most User-Agents of one program. Further ones aren't logged: a client can't fill the log.
    private static let agentLimit = 16

    private let state = Mutex(State())

    func trusts(_ client: KnownClient, at now: MonotonicTime) {
        state.withLock { state in
            state.signs.trusts(client, at: now)
            if !state.told.isEmpty { state.told[Program(client)]?.remove(client.agent) }
        }
    }

    /// - Parameter instant: trust that another client has shown since then may be this one's, unless they can be
    ///   distinguished.
    /// - Returns: whether it is news that the client doesn't trust the authority.
    func distrusts(_ client: KnownClient, since instant: MonotonicTime) -> Bool {
        state.withLock { state in
            guard !state.signs.includes(client, since: instant) else { return false }
            if state.told.count >= Self.toldLimit { state.told = [:] }
            let program = Program(client)
            guard state.told[program, default: []].count < Self.agentLimit else { return false }
            return state.told[program, default: []].insert(client.agent).inserted
        }
    }
}

/// The departures of a worker's clients, for as long as they may mean nothing: browsers open connections to spare, and
/// close them when they have asked over another.
final class DepartureDesk {
    /// How long a client has for its first request.
    static let patienceNanoseconds: UInt64 = 3_000_000_000
    /// How long connections count as one page's.
    private static let memoryNanoseconds: UInt64 = 10_000_000_000
    private static let limit = 256

    private let loop: EventLoop
    private let watch: TrustWatch
    private let tell: (ClientDeparture) -> Void
    private var waiting: [(departure: ClientDeparture, due: MonotonicTime)] = []
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.waited() }

    /// - Parameter tell: called on the loop for a client that still hasn't sent a request, once for each client.
    init(loop: EventLoop, watch: TrustWatch, tell: @escaping (ClientDeparture) -> Void) {
        self.loop = loop
        self.watch = watch
        self.tell = tell
    }

    func note(_ departure: ClientDeparture) {
        guard waiting.count < Self.limit else { return }
        let due = loop.now.advanced(byNanoseconds: Self.patienceNanoseconds)
        waiting.append((departure, due))
        if waiting.count == 1 { deadline.set(due) }
    }

    private func waited() {
        let now = loop.now
        let over = waiting.prefix { $0.due <= now }
        waiting.removeFirst(over.count)
        for (departure, due) in over {
            let earliest = MonotonicTime(nanoseconds: due - MonotonicTime(nanoseconds: Self.memoryNanoseconds))
            if watch.distrusts(departure.client, since: earliest) { tell(departure) }
        }
        if let next = waiting.first { deadline.set(next.due) }
    }
}
