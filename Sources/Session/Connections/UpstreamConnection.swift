package import EventLoop
import HTTPWire
package import Security
import TLS
package import Transport

/// How long the steps took that led to a connection, in nanoseconds; as in URLSessionTaskMetrics.
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
    /// The verdict under which it may be used; nil in the clear.
    package let verdict: Verdict?
    /// The matched pin as written. A copy: workers would contend for the configuration's reference count.
    package let matchedPin: String?
    /// Unix time from which the chain is no longer valid.
    package let validUntil: Int64
    package let metrics: ConnectMetrics
    /// The origin's, or the parent proxy's.
    package let address: SocketAddress
    /// Where the origin is; nil: not known, since a parent proxy has looked it up.
    package let scope: AddressScope?
    /// This end's; a system call.
    package var localAddress: SocketAddress? { stream.localAddress }
    /// By the name that ALPN has for it (RFC 7301 section 6).
    package let applicationProtocol = "http/1.1"
    /// Where the connection ends at the parent proxy: what requests to it carry. nil: it ends at the origin.
    package let parentHop: ParentHop?
    package let responses: MessagePipe
    let requests: HTTP1Outlet
    /// ``Origin/network`` when it was made.
    let network: UInt64
    // Unchecked from here on: each is stored whole, or changed by code that calls nobody, as the parser is.
    /// A client's credentials may be bound to it: it is not shared with others.
    @exclusivity(unchecked) package var isPersonal = false
    /// Exchanges begun on it; beyond one it is reused.
    @exclusivity(unchecked) package internal(set) var exchanges = 0
    /// Who hears of the exchange under way.
    // unowned: the receiver keeps the connection from begin(for:) to finish, abandon or surrender, which clear it.
    @exclusivity(unchecked) unowned var receiver: (any UpstreamReceiver)?
    /// Reads the heads of responses, as far as they have come, into ``response``.
    @exclusivity(unchecked) var parser: HeadParser?
    @exclusivity(unchecked) var response = ResponseHead()
    /// How that is carried.
    @exclusivity(unchecked) var framing = HTTP1Framing()

    /// Where it lies in the pool's order, while it is idle.
    @exclusivity(unchecked) private(set) var restingPlace: Int?

    /// The origin has ended the connection, or spoken unasked, while no exchange was under way.
    @exclusivity(unchecked) package private(set) var isOver = false
    /// Whether it served before, or waited so long that the origin may be closing it as a request goes out.
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

    /// What the socket's packets are marked with (DSCP, RFC 2474): 0 is what everybody sends.
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

    /// Waits outside of the pool for the first request inside a CONNECT tunnel, and notices if the origin ends.
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

    /// An idle origin that sends has ended or breaks the protocol; a TLS session ticket reads as nothing.
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
