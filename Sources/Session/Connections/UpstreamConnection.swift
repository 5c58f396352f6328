package import EventLoop
import HTTPWire
package import Security
import TLS
package import Transport

/// Nanoseconds that each step of a connection took; as in URLSessionTaskMetrics.
package struct ConnectMetrics: Sendable {
    package var nameLookup: UInt64 = 0
    package var connect: UInt64 = 0
    package var tls: UInt64 = 0

    package init() {}
}

/// One verified and pin-matched connection to an origin: in use for one exchange, or idle in the pool.
package final class UpstreamConnection: ByteStreamOwner {
    package let stream: ByteStream
    package let origin: Origin
    /// The verdict that admitted it; nil in the clear.
    package let verdict: Verdict?
    /// The matched pin as written. A copy, since workers would contend for the configuration's reference count.
    package let matchedPin: String?
    /// Unix time at which the chain expires.
    package let validUntil: Int64
    package let metrics: ConnectMetrics
    package let address: SocketAddress
    /// The origin's scope; nil if a parent proxy looked it up.
    package let scope: AddressScope?
    /// Makes a system call.
    package var localAddress: SocketAddress? { stream.localAddress }
    /// ALPN name (RFC 7301 section 6).
    package let applicationProtocol = "http/1.1"
    /// What requests to a parent proxy carry; nil: the connection ends at the origin.
    package let parentHop: ParentHop?
    package let responses: MessagePipe
    let requests: HTTP1Outlet
    /// ``Origin/network`` when it was made.
    let network: UInt64
    // Unchecked below: each is stored whole, or changed by code that calls nobody, as the parser is.
    /// Bound to one client's credentials: not shared.
    @exclusivity(unchecked) package var isPersonal = false
    /// Exchanges begun on it.
    @exclusivity(unchecked) package internal(set) var exchanges = 0
    /// The exchange in flight.
    // unowned: the receiver keeps the connection from begin(for:) to finish, abandon or surrender, which clear it.
    @exclusivity(unchecked) unowned var receiver: (any UpstreamReceiver)?
    /// Parses response heads into ``response``.
    @exclusivity(unchecked) var parser: HeadParser?
    @exclusivity(unchecked) var response = ResponseHead()
    /// How the request's body is framed.
    @exclusivity(unchecked) var framing = HTTP1Framing()

    /// Its place in the pool's order while idle.
    @exclusivity(unchecked) private(set) var restingPlace: Int?

    /// The origin closed it, or sent something, between exchanges.
    @exclusivity(unchecked) package private(set) var isOver = false
    /// Whether it served before, or idled so long that the origin may be closing it.
    package var isReused: Bool {
        hasRested || exchanges > 1 || heldSince.map { loop.now - $0 > Self.longWaitNanoseconds } ?? false
    }

    private static let longWaitNanoseconds: UInt64 = 1_000_000_000
    private var heldSince: MonotonicTime?
    private var hasRested = false
    private let loop: EventLoop
    private let idleDeadline: Deadline

    init(
        loop: EventLoop, stream: ByteStream, origin: Origin, verdict: Verdict?, validUntil: Int64,
        metrics: ConnectMetrics, address: SocketAddress, scope: AddressScope? = nil, parentHop: ParentHop? = nil, dscp: UInt8 = 0,
        received: consuming ByteBuffer
    ) {
        self.stream = stream
        self.origin = origin
        self.verdict = verdict
        matchedPin = (verdict?.matchedPin?.origin).map { String(decoding: Array($0.utf8), as: UTF8.self) }
        self.validUntil = validUntil
        self.metrics = metrics
        self.address = address
        self.scope = scope
        self.parentHop = parentHop
        self.dscp = dscp
        network = origin.network
        requests = HTTP1Outlet(stream, slabs: received.slabs)
        responses = MessagePipe(.responses, on: stream, received: received)
        self.loop = loop
        idleDeadline = Deadline(loop: loop)
        idleDeadline.bind(to: self) { $0.origin.drop($0) }
        stream.owner = self
    }

    /// DSCP mark of the socket (RFC 2474); 0 is the default.
    private var dscp: UInt8

    func mark(_ wanted: UInt8) {
        guard wanted != dscp else { return }
        dscp = wanted
        stream.mark(wanted)
    }

    package func close() {
        stream.sayGoodbye()
        stream.stop()
    }

    // MARK: Idle

    /// Waits outside of the pool for the first request inside a CONNECT tunnel; notices if the origin ends.
    package func hold() {
        heldSince = loop.now
        stream.wantsRead = true
    }

    func enterPool(at place: Int, idleNanoseconds: UInt64) {
        restingPlace = place
        hasRested = true
        rest()
        stream.wantsRead = true
        idleDeadline.set(afterNanoseconds: idleNanoseconds)
    }

    func leavePool() {
        restingPlace = nil
        idleDeadline.clear()
    }

    /// Input on an idle connection is its end or a breach of protocol; a TLS session ticket reads as nothing.
    package func streamIsReadable(_ stream: ByteStream) {
        if let receiver { return receiver.upstreamIsReadable() }
        switch responses.receive(limit: 1) {
        case .blocked?: rest()
        default:
            isOver = true
            stream.wantsRead = false
            origin.drop(self)
        }
    }

    private func rest() {
        responses.rest()
        stream.rest()
    }

    package func streamIsWritable(_ stream: ByteStream) { receiver?.upstreamIsWritable() }
    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}
}
