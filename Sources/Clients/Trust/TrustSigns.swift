import PinproxyEventLoop
import PinproxyHTTPWire

/// A client as far as it can be distinguished from others.
struct KnownClient: Sendable {
    let claimant: Claimant
    /// Nil: unknown.
    let executable: String?
    /// The CONNECT's User-Agent, which distinguishes the programs of a run and of other machines.
    var agent = ClientAgent.none
}

/// The value of a field User-Agent, as far as it distinguishes programs.
struct ClientAgent: Hashable, Sendable {
    /// There is no such field.
    static let none = ClientAgent(hash: 0)

    private let hash: Int

    private init(hash: Int) { self.hash = hash }

    init(_ value: Span<UInt8>) {
        var hasher = Hasher()
        for index in value.indices { hasher.combine(value[index]) }
        hash = hasher.finalize()
    }

    static func of(_ request: borrowing RequestView) -> ClientAgent {
        request.head.first(.userAgent).map { ClientAgent(request.bytes.extracting($0.offsets)) } ?? .none
    }
}

/// The clients that have shown that they trust the proxy's authority, by a request inside TLS with it.
struct TrustSigns: Sendable {
    private struct Shown {
        var executables: Set<String> = []
        var agents: Set<ClientAgent> = []
        /// User-Agents of clients with an unknown executable.
        var agentsAlone: Set<ClientAgent> = []
        var latest: MonotonicTime
        /// By too many to distinguish.
        var isAnybodys = false

        private static let limitOfEach = 64

        init(latest: MonotonicTime) { self.latest = latest }

        mutating func note(_ client: KnownClient, at now: MonotonicTime) {
            latest = now
            guard !isAnybodys else { return }
            if let executable = client.executable {
                executables.insert(executable)
            } else {
                agentsAlone.insert(client.agent)
            }
            agents.insert(client.agent)
            if max(executables.count, agents.count) > Self.limitOfEach {
                (executables, agents, agentsAlone, isAnybodys) = ([], [], [], true)
            }
        }
    }

    /// Claimants; the oldest makes room.
    private static let limit = 1024

    private var shown: [Claimant: Shown] = [:]
    private var order: [Claimant] = []

    mutating func trusts(_ client: KnownClient, at now: MonotonicTime) {
        if shown[client.claimant] == nil {
            if order.count >= Self.limit { shown[order.removeFirst()] = nil }
            order.append(client.claimant)
        }
        // In place: a copy would copy the sets, for each connection.
        shown[client.claimant, default: Shown(latest: now)].note(client, at: now)
    }

    /// Whether it has shown trust. One of unknown executable may be any of its claimant's with that User-Agent.
    /// - Parameter instant: between clients that can't be distinguished, only trust shown since then counts; nil: any.
    func includes(_ client: KnownClient, since instant: MonotonicTime?) -> Bool {
        guard let own = shown[client.claimant] else { return false }
        if let executable = client.executable, own.executables.contains(executable) { return true }
        let agents = client.executable == nil ? own.agents : own.agentsAlone
        guard own.isAnybodys || agents.contains(client.agent) else { return false }
        return instant.map { $0 <= own.latest } ?? true
    }
}
