import PinproxyEventLoop
package import PinproxyHTTP2
import PinproxyHTTPWire
import PinproxyTransport

/// A connection to an origin that exchanges share, a stream for each (RFC 9113).
///
/// Its origin keeps it while exchanges may begin on it, and the pool's order while none is in flight. It leaves when
/// the peer does (GOAWAY), when it is retired, and when a silent peer answers no PING; it closes after its last
/// exchange.
package final class HTTP2Upstream: UpstreamConnection {
    /// For an answer to the PING that follows a silence.
    private static let patience: UInt64 = 5_000_000_000
    private static let silence: UInt64 = 1_000_000_000
    private static let opaque: UInt64 = 0x616c_6976_653f_0000

    let connection: HTTP2Connection
    private let idleNanoseconds: UInt64
    /// Exchanges that hold a stream, or are about to open one.
    // Unchecked below: stored whole.
    @exclusivity(unchecked) private var leases = 0
    @exclusivity(unchecked) private var isLeaving = false
    /// False: a reload came meanwhile. Only its requester uses it.
    @exclusivity(unchecked) private var isShared = false
    /// The peer is silent, and was sent a PING.
    @exclusivity(unchecked) private var isSuspect = false
    /// The peer's number of streams when it refused one.
    @exclusivity(unchecked) private var refusedAt: Int?
    private let pingNanoseconds: UInt64?
    /// For the answer to a PING, or until the next.
    private let pingDeadline: Deadline
    @exclusivity(unchecked) private var isAwaitingPong = false

    /// - Parameter ping: how often to check that the peer is alive, while exchanges are in flight; nil: never.
    init(_ made: Establishment, slabs: SlabPool, timeouts: Timeouts, ping: Duration? = nil) throws(HTTP2Unavailable) {
        pingNanoseconds = ping?.nanoseconds
        var settings = HTTP2Settings()
        settings.maxHeaderListSize = 256 << 10
        connection = try HTTP2Connection(
            .client, over: made.stream, settings: settings, loop: made.loop, slabs: slabs,
            idleNanoseconds: timeouts.idleClient.nanoseconds)
        idleNanoseconds = timeouts.idleUpstream.nanoseconds
        settingsNanoseconds = timeouts.connect.nanoseconds
        pingDeadline = Deadline(loop: made.loop)
        settingsDeadline = Deadline(loop: made.loop)
        super.init(made)
        pingDeadline.bind(to: self) { $0.pingDue() }
        settingsDeadline.bind(to: self) { $0.settingsDue() }
        connection.start(for: self)
        isShared = origin.share(self)
        // Until its first exchange.
        if isShared { origin.giveBack(self, idleNanoseconds: idleNanoseconds) }
    }

    package override var applicationProtocol: String { HTTPProtocol.http2.rawValue }

    // MARK: Exchanges

    /// Whether another exchange may begin on it.
    package var takesExchanges: Bool {
        guard !isLeaving, !isSuspect, !connection.isClosed, connection.session.takesRequests else { return false }
        if awaitsSettings { return leases == 0 }
        return leases < min(connection.session.maxConcurrentStreams, refusedAt ?? .max)
    }

    /// Exchanges in flight.
    package var streamCount: Int { connection.streamCount }

    /// The peer's SETTINGS arrived.
    package var isSettled: Bool { connection.hasSettings }
    /// They may still arrive: until then it serves one exchange (RFC 9113 section 3.4).
    var awaitsSettings: Bool { !isSettled && !hasWaitedForSettings }
    // Unchecked: stored whole.
    @exclusivity(unchecked) private var hasWaitedForSettings = false
    private var settled: [() -> Void] = []
    private let settingsDeadline: Deadline
    private let settingsNanoseconds: UInt64

    /// - Parameter done: called once, when the peer's settings have arrived, the wait has timed out, or the connection
    ///   has ended.
    package func whenSettled(_ done: @escaping () -> Void) {
        guard awaitsSettings, !isOver else { return done() }
        settled.append(done)
        if settled.count == 1 { settingsDeadline.set(afterNanoseconds: settingsNanoseconds) }
    }

    private func settingsDue() {
        hasWaitedForSettings = true
        tellSettled()
    }

    private func tellSettled() {
        settingsDeadline.clear()
        let settled = settled
        self.settled = []
        for done in settled { done() }
    }

    /// Whether it carries other protocols (RFC 8441).
    package var takesUpgrades: Bool { connection.session.acceptsConnectProtocol }

    func meets(_ need: ConnectionNeed) -> Bool {
        switch need {
        case .any: true
        case .window: connection.session.remoteWindow > 0
        // The exchange awaits them (``HTTP2UpstreamStream``).
        case .upgrade: takesUpgrades || awaitsSettings
        case .own, .fresh: false
        }
    }

    package override func lease() -> (any Upstream)? {
        guard takesExchanges else { return nil }
        if idlePlace != nil { origin.wake(self) }
        leases += 1
        if let pingNanoseconds, leases == 1, !isAwaitingPong { pingDeadline.set(afterNanoseconds: pingNanoseconds) }
        guard let stream = spare.popLast() else { return HTTP2UpstreamStream(of: self) }
        stream.beginAnew()
        return stream
    }

    /// Streams of completed exchanges, for reuse.
    // Unchecked: changed by code that calls no other code.
    @exclusivity(unchecked) private var spare: [HTTP2UpstreamStream] = []
    private static let mostSpare = 32

    /// An exchange has left.
    func giveBack(_ stream: HTTP2UpstreamStream? = nil) {
        // Spare streams retain this object. Once it has ended it keeps no spare streams, and is released.
        if let stream, !isOver, spare.count < Self.mostSpare { spare.append(stream) }
        leases -= 1
        guard leases == 0 else { return }
        if isLeaving || !isShared { return shut() }
        origin.giveBack(self, idleNanoseconds: idleNanoseconds)
    }

    /// The peer had enough streams.
    func refused() {
        refusedAt = max(1, leases - 1)
        origin.putBack(self)
    }

    /// An exchange waited in vain: sends a PING, unless something else has arrived since.
    func waitedInVain(since began: MonotonicTime) {
        guard !isSuspect, !isOver, connection.lastReceived <= began, loop.now - began >= Self.silence else { return }
        isSuspect = true
        probe()
    }

    private func probe() {
        guard !isAwaitingPong else { return }
        isAwaitingPong = true
        connection.session.ping(Self.opaque)
        connection.pumpLater()
        pingDeadline.set(afterNanoseconds: Self.patience)
    }

    private func pingDue() {
        if isAwaitingPong { return connection.fail("answered no PING within \(Self.patience / 1_000_000_000) s") }
        if leases > 0 { probe() }
    }

    // MARK: The end

    /// Its origin and the pool keep it.
    package override func letGo() {
        if !isShared { close() }
    }

    /// Once its last exchange has ended.
    package override func close() {
        isLeaving = true
        origin.leave(self)
        if leases == 0 { shut() }
    }

    private func shut() {
        guard !isOver else { return }
        isOver = true
        connection.close()
    }
}

extension HTTP2Upstream: HTTP2ConnectionOwner {
    /// Server push is disabled.
    package func received(_ place: HTTP2HeadPlace, on id: HTTP2StreamID, ends: Bool) {
        connection.session.reset(id, .refusedStream)
    }
    package func received(_ defect: HTTP2Defect, on id: HTTP2StreamID) {}
    package func connectionIsQuiet() { spare = [] }

    package func connectionChanged(_ connection: HTTP2Connection) {
        if connection.session.isGoingAway, !isLeaving { close() }
        if let refusedAt, connection.streamCount < refusedAt { self.refusedAt = nil }
        if isSettled, !settled.isEmpty { tellSettled() }
    }

    package func noticed(_ notice: HTTP2Notice, on connection: HTTP2Connection) { origin.tell(notice, of: self) }

    package func answeredPing(_ opaque: UInt64) {
        guard opaque == Self.opaque else { return }
        isSuspect = false
        isAwaitingPong = false
        if let pingNanoseconds, leases > 0 {
            pingDeadline.set(afterNanoseconds: pingNanoseconds)
        } else {
            pingDeadline.clear()
        }
    }

    package func connectionEnded(_ connection: HTTP2Connection, _ cause: String) {
        isOver = true
        isLeaving = true
        spare = []
        pingDeadline.clear()
        if idlePlace != nil { origin.wake(self) }
        origin.leave(self)
        tellSettled()
    }
}
