package import HTTPWire

package enum ResponseHeadProgress {
    case incomplete
    case complete(ResponseTraits)
    /// The upstream ended or failed within it; for people.
    case ended(String)
    case malformed(WireError)
    case tooLarge
    case tooManyFields
    /// There is none, for a reason that is known.
    case failed(ExchangeFailure)
    /// The response that was to be shared is none for this exchange.
    case notShared
}

/// What is known of an upstream when an exchange begins on it.
package struct UpstreamFacts {
    /// It served before, so that the origin may be closing it.
    package var isReused = false
    /// Where the origin is; nil: not known.
    package var scope: AddressScope?
    package var connection: UpstreamConnection?
}

package enum UpstreamEnding {
    /// The response is whole: a connection goes back to its origin's pool, or is closed.
    case finished(requestSent: Bool, idleNanoseconds: UInt64)
    /// It ends where it stands.
    case abandoned
    case switched
}

/// The far door of an exchange: who answers. Leased from an ``Origin`` for one exchange, and lives on its loop.
package protocol Upstream: AnyObject {
    var facts: UpstreamFacts { get }

    func begin(for receiver: any UpstreamReceiver)

    /// Takes the head of the request, awaits the response, and returns where the request's body goes.
    func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink

    /// Whether ``UpstreamReceiver/upstreamIsReadable()`` is wanted.
    func wantsRead(_ wanted: Bool)
    /// Looks for the next head, of at most `limit` bytes. One that was found before and has no body is dropped.
    /// - Parameter readable: there is known to be more to read.
    func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress
    /// Lends the last head that was found. It is valid until its body moves.
    func withResponse(_ body: (borrowing ResponseView) -> Void)
    var responseBody: any BodySource { get }

    /// - Returns: the connection, if the client takes it over.
    func end(_ ending: UpstreamEnding) -> UpstreamConnection?
}
