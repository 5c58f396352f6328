package import PinproxyEventLoop
package import PinproxySecurity
import PinproxyTLS
package import PinproxyTransport

/// Nanoseconds that each step of a connection took, and what TLS agreed on; as in URLSessionTaskMetrics.
package struct ConnectMetrics: Sendable {
    package var nameLookup: UInt64 = 0
    package var connect: UInt64 = 0
    package var tls: UInt64 = 0
    /// The TLS key exchange's group; nil in the clear.
    package var group: String?

    package init() {}
}

/// The parts of every new connection to an origin.
struct Establishment {
    let loop: EventLoop
    let stream: ByteStream
    let origin: Origin
    var verdict: Verdict?
    /// Unix time at which the chain expires.
    var validUntil: Int64 = .max
    var metrics = ConnectMetrics()
    let address: SocketAddress
    /// The resolver's answer; nil: it wasn't asked.
    var answer: AddressAnswer?
    /// The origin's scope; nil if a parent proxy looked it up.
    var scope: AddressScope?
    /// DSCP mark of the socket (RFC 2474); 0 is the default.
    var dscp: UInt8 = 0
}

/// One verified and pin-matched connection to an origin. ``HTTP1Upstream`` serves one exchange at a time,
/// ``HTTP2Upstream`` many.
package class UpstreamConnection {
    package final let stream: ByteStream
    package final let origin: Origin
    /// The verdict that admitted it; nil in the clear.
    package final let verdict: Verdict?
    /// The matched pin as written. A copy, since workers would contend for the configuration's reference count.
    package final let matchedPin: String?
    /// Unix time at which the chain expires.
    package final let validUntil: Int64
    package final let metrics: ConnectMetrics
    package final let address: SocketAddress
    /// The resolver's answer; nil: it wasn't asked.
    package final let answer: AddressAnswer?
    /// The origin's scope; nil if a parent proxy looked it up.
    package final let scope: AddressScope?
    /// Asked of the system when it is first needed.
    package private(set) final lazy var localAddress: SocketAddress? = stream.localAddress
    final let loop: EventLoop
    /// ``Origin/network`` when it was made.
    final let network: UInt64
    final let idleDeadline: Deadline
    // Unchecked below: each is stored whole.
    /// Exchanges begun on it.
    @exclusivity(unchecked) package internal(set) final var exchanges = 0
    /// The origin closed it, or broke its protocol.
    @exclusivity(unchecked) package internal(set) final var isOver = false
    /// Its place in the pool's order while idle.
    @exclusivity(unchecked) private(set) final var idlePlace: Int?
    /// Whether it was in the pool.
    @exclusivity(unchecked) private(set) final var hasBeenIdle = false
    private final var dscp: UInt8

    init(_ made: Establishment) {
        stream = made.stream
        origin = made.origin
        verdict = made.verdict
        matchedPin = (made.verdict?.matchedPin?.origin).map { String(decoding: Array($0.utf8), as: UTF8.self) }
        validUntil = made.validUntil
        metrics = made.metrics
        address = made.address
        answer = made.answer
        scope = made.scope
        loop = made.loop
        network = made.origin.network
        dscp = made.dscp
        idleDeadline = Deadline(loop: made.loop)
        idleDeadline.bind(to: self) { $0.origin.drop($0) }
    }

    /// ALPN name (RFC 7301 section 6).
    package var applicationProtocol: String { HTTPProtocol.http1.rawValue }
    /// Exchanges share it, each on a separate stream.
    package final var hasStreams: Bool { self is HTTP2Upstream }

    /// Marks later packets. Where exchanges share the connection, the last one to begin decides.
    final func mark(_ wanted: UInt8) {
        guard wanted != dscp else { return }
        dscp = wanted
        stream.mark(wanted)
    }

    /// The upstream of the next exchange; nil: none may begin on it.
    package func lease() -> (any Upstream)? { nil }

    package func close() {
        stream.sayGoodbye()
        stream.stop()
    }

    /// Releases it for an exchange that didn't begin: closes it, unless others share it.
    package func letGo() { close() }

    // MARK: Idle

    /// Waits outside of the pool for the first request inside a CONNECT tunnel; notices if the origin ends.
    package func hold() {}

    /// Whether another exchange may be served, or a new one must be dialled.
    var isFitForPool: Bool { true }

    func enterPool(at place: Int, idleNanoseconds: UInt64) {
        idlePlace = place
        hasBeenIdle = true
        idleDeadline.set(afterNanoseconds: idleNanoseconds)
    }

    func leavePool() {
        idlePlace = nil
        idleDeadline.clear()
    }
}
