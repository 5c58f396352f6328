package import HTTPWire
package import TLS
package import Transport

/// What became of looking for a response's head.
package enum ResponseHeadProgress {
    /// More must come.
    case incomplete
    case complete(ResponseTraits)
    /// The upstream ended or failed within it; for people.
    case ended(String)
    case malformed(WireError)
    /// It is longer than allowed.
    case tooLarge
    case tooManyFields
    /// There is none, for a reason that is known.
    case failed(ExchangeFailure)
    /// The response that was to be shared is none for this exchange.
    case notShared
}

/// The far door of an exchange: who answers. Leased from an ``Origin`` for one exchange.
///
/// A request's bytes are written to it. Lives on the loop of the exchange.
package protocol Upstream: ByteSink {
    /// It served before, so that the origin may be closing it.
    var isReused: Bool { get }

    /// Where the origin is; nil: not known.
    var scope: AddressScope? { get }

    /// Serves an exchange from now on.
    func begin(for receiver: any UpstreamReceiver)

    // MARK: The request's way up

    /// Writes the head as the origin is to see it to `head`.
    /// - Parameters:
    ///   - via: the name under which this hop is recorded; nil: it isn't, or has been.
    ///   - edits: what else is changed in it.
    func writeHead(
        of request: borrowing RequestView, to destination: Destination, via: ViaPseudonym?, edits: HeadEdits,
        into head: inout [UInt8])

    // MARK: The response's way down

    /// Whether ``UpstreamReceiver/upstreamIsReadable()`` is wanted.
    func wantsRead(_ wanted: Bool)
    /// Reads what is there and looks for a head in it.
    /// - Parameter began: called if bytes arrived.
    func receiveHead(of method: Method, limit: Int, began: () -> Void) -> ResponseHeadProgress
    /// Looks for a head in what has been received.
    func nextHead(of method: Method) -> ResponseHeadProgress
    /// Bytes wait of which no event will tell.
    var holdsBytes: Bool { get }
    /// Lends the head that was found last.
    func withResponse(_ body: (borrowing ResponseView) -> Void)
    /// Drops that head: the response is not passed on.
    func dropHead()
    /// `head`, which is used up, goes in the place of the received one.
    func beginResponse(head: inout [UInt8], _ kind: ResponseKind, coding: ResponseCoding)
    /// Passes on what is there, as far as both sides go.
    func passResponse(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome
    /// The response under way has been received to its last byte, as its head and what came with it show.
    var hasWholeResponse: Bool { get }
    /// Why ``passResponse(to:readable:)`` found the response truncated, for people.
    var truncation: String { get }
    /// All that was received of the response has been passed on.
    var hasPassedAll: Bool { get }
    /// Bytes of the response under way that were passed on, its head included.
    var responseCarried: UInt64 { get }

    /// Why the origin ended the connection, if that was over a client certificate that it asked for.
    func certificateRefusal(at time: UnixTime) -> ClientCertificateRefusal?

    // MARK: The end

    /// The response is over: the connection goes back to its origin's pool, or is closed.
    /// - Returns: itself, if it is the client's from now on.
    func finish(requestSent: Bool, idleNanoseconds: UInt64) -> UpstreamConnection?
    /// Ends it where it stands.
    func abandon()
    /// Gives the connection to whoever carries it on as another protocol.
    func surrender() -> UpstreamConnection
}

extension Upstream {
    package func certificateRefusal(at time: UnixTime) -> ClientCertificateRefusal? { nil }
    package var truncation: String { "the origin ended in the middle of the response" }
}
