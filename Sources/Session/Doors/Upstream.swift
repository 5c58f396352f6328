package import PinproxyHTTPWire

package enum ResponseHeadProgress {
    case incomplete
    case complete(ResponseTraits)
    /// The upstream ended or failed within it, with a human-readable reason.
    case ended(String)
    /// The upstream says that it didn't process the request (RFC 9113 section 8.7), with a human-readable reason.
    case unprocessed(String)
    /// The upstream didn't process the request, and takes it only over HTTP/1.1 (RFC 9113 section 7), with a
    /// human-readable reason.
    case needsOwnConnection(String)
    case malformed(WireError)
    case tooLarge
    case tooManyFields
    /// No response, for a known reason.
    case failed(ExchangeFailure)
    /// The shared response can't serve this exchange.
    case notShared
    /// The origin confirmed another response than the stored one, which is forgotten.
    case unconfirmed
}

/// Facts about an upstream, for its exchange.
package struct UpstreamFacts {
    /// It served before: the origin may be closing it.
    package var isReused = false
    /// The origin may say that it did nothing for a request, which is then sent again.
    package var mayRefuse = false
    /// Nil: unknown.
    package var scope: AddressScope?
    package var connection: UpstreamConnection?
    /// The HTTP/2 stream, once the request was sent.
    package var stream: Int32?
    /// The cache's part, once the response is known; nil: none.
    package var cache: CacheHandling?

    /// The response is one that was stored, and not confirmed.
    var isStored: Bool { cache?.result == .hit || cache?.result == .stale }
}

package enum UpstreamEnding {
    /// The response is complete: the connection goes to its pool, or is closed.
    case finished(requestSent: Bool, idleNanoseconds: UInt64)
    /// Closed in mid-message.
    case abandoned
    case switched
    /// No exchange began on it.
    case unused(idleNanoseconds: UInt64)
}

/// The origin's side of an exchange. Leased from an ``Origin`` for one exchange, on its loop.
package protocol Upstream: AnyObject {
    var facts: UpstreamFacts { get }

    func begin(for receiver: any UpstreamReceiver)

    /// Sends the request's head, and returns the sink of its body.
    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink

    /// Whether ``UpstreamReceiver/upstreamIsReadable()`` is wanted.
    func wantsRead(_ wanted: Bool)
    /// Looks for the next head, of at most `limit` bytes. A previous one without a body is dropped.
    /// - Parameter readable: more input is known to be available.
    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress
    /// Borrows the last head found, valid until its body moves.
    func withResponse(_ body: (borrowing ResponseView) -> Void)
    var responseBody: any BodySource { get }

    /// - Returns: the connection if the client takes it over.
    func end(_ ending: UpstreamEnding) -> HTTP1Upstream?
}
