import PinproxyEventLoop
import PinproxyHTTPWire
package import PinproxyTransport

/// A connection that serves one exchange at a time: HTTP/1.1, or the opaque bytes of a tunnel. In use for an exchange,
/// or idle in the pool. `HTTP1Exchanging.swift` has its exchanges.
package final class HTTP1Upstream: UpstreamConnection {
    /// The additions to requests through a parent proxy; nil: the connection ends at the origin.
    package let parentHop: ParentHop?
    package let responses: MessagePipe
    let requests: HTTP1Outlet
    // Unchecked below: each is stored whole, or changed by code that calls no other code, as the parser is.
    /// Bound to one client's credentials: not shared.
    @exclusivity(unchecked) package var isPersonal = false
    /// The exchange in flight.
    // unowned: the receiver keeps the connection from begin(for:) to finish, abandon or surrender, which clear it.
    @exclusivity(unchecked) unowned var receiver: (any UpstreamReceiver)?
    /// Parses response heads into ``response``.
    @exclusivity(unchecked) var parser: HeadParser?
    @exclusivity(unchecked) var response = ResponseHead()
    /// How the request's body is framed.
    @exclusivity(unchecked) var framing = HTTP1Framing()
    private var heldSince: MonotonicTime?

    /// - Parameter received: bytes from an origin that speaks first.
    init(_ made: Establishment, parentHop: ParentHop? = nil, received: consuming ByteBuffer) {
        self.parentHop = parentHop
        requests = HTTP1Outlet(made.stream, slabs: received.slabs)
        responses = MessagePipe(.responses, on: made.stream, received: received)
        super.init(made)
        stream.owner = self
    }

    /// Whether it served before, or idled so long that the origin may be closing it.
    package var isReused: Bool {
        hasBeenIdle || exchanges > 1 || heldSince.map { loop.now - $0 > Self.longWaitNanoseconds } ?? false
    }

    private static let longWaitNanoseconds: UInt64 = 1_000_000_000

    package override func lease() -> (any Upstream)? { self }

    // MARK: Idle

    package override func hold() {
        heldSince = loop.now
        stream.wantsRead = true
    }

    /// With unread bytes, or closed by its peer, it is not idle.
    override var isFitForPool: Bool { !isPersonal && !stream.holdsBytes && responses.isEmpty }

    override func enterPool(at place: Int, idleNanoseconds: UInt64) {
        super.enterPool(at: place, idleNanoseconds: idleNanoseconds)
        releaseBuffers()
        stream.wantsRead = true
    }

    private func releaseBuffers() {
        responses.releaseBuffer()
        stream.releaseBuffers()
    }
}

extension HTTP1Upstream: ByteStreamOwner {
    /// Input on an idle connection is its end or a breach of protocol; a TLS session ticket reads as nothing.
    package func streamIsReadable(_ stream: ByteStream) {
        if let receiver { return receiver.upstreamIsReadable() }
        switch responses.receive(limit: 1) {
        case .blocked?: releaseBuffers()
        default:
            isOver = true
            stream.wantsRead = false
            origin.drop(self)
        }
    }

    package func streamIsWritable(_ stream: ByteStream) { receiver?.upstreamIsWritable() }
    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}
}
