package import HTTPWire
package import Serialization
package import Transport

/// Tells of a connection that was tried.
package typealias AttemptReport = (Result<UpstreamConnection, UpstreamFailure>) -> Void

/// What becomes of a redirect.
package enum RedirectRuling {
    /// - Parameter rules: what shapes the request there and judges the response; nil: nothing does.
    case follow(Destination, ExchangeRules?)
    /// It can't be followed as the one who asked would follow it, who gets the redirect instead.
    case pass
    /// Going there isn't allowed; why, for people.
    case refuse(String)
    /// Nobody could be asked there; why, for people.
    case fail(String)
}

/// How an exchange ended, for the one who asked.
package enum ExchangeEnding {
    /// The last byte of the response has been passed on.
    /// - Parameter keeping: the upstream that is bound to this client from now on (NTLM, Negotiate).
    case finished(keeping: UpstreamConnection?)
    /// Nothing of a response was passed on.
    case refused(ExchangeFailure, Destination)
    /// What was passed on is not the whole.
    case cut(Cut)
    /// `101 Switching Protocols` has been passed on to its last byte.
    case switched(UpstreamConnection)
}

/// How a response ends that is not whole.
package enum Cut: Sendable {
    /// All that came was passed on: it is to arrive, and then the client is to see that something is missing.
    case delivered
    /// At once.
    case reset
}

/// The near door of an exchange: who asked. A client's connection, a stream of one, a report on its way, a
/// Swift program.
///
/// A response's bytes are written to it. It keeps its exchange, and is called on the exchange's loop.
package protocol Downstream: ByteSink {
    /// Lends the request's head.
    func withRequest(_ body: (borrowing RequestView) -> Void)

    // MARK: The request's way up

    /// `head` goes in the place of the received one; ``passRequest(to:readable:)`` passes on what follows.
    /// - Parameters:
    ///   - head: scratch space, used up.
    ///   - replayLimit: what is sent is kept as long as its body is no longer than that, see ``canResendRequest``.
    func beginRequest(head: inout [UInt8], replayLimit: Int)
    /// Goes back to the request's first byte, to send it with another head.
    /// - Parameters:
    ///   - head: scratch space, used up.
    ///   - keepsBody: the body goes after it, which was sent only if ``canResendRequest``; else the request, which was
    ///     sent to its end, has none any more.
    func beginAgain(head: inout [UInt8], keepsBody: Bool)
    /// Lends the head that was sent, if it is still here.
    func withSentHead(_ body: (Span<UInt8>) -> Void)
    /// Passes on what is there, as far as both sides go.
    /// - Parameter readable: there is known to be more to read.
    func passRequest(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome
    /// Bytes of the request that were passed on, its head included.
    var requestCarried: UInt64 { get }
    /// Every byte that was sent is still here.
    var canResendRequest: Bool { get }
    /// Goes back to the request's first byte.
    func rewindRequest()
    /// What was sent needn't be kept any more.
    func forgetReplay()
    /// Whether ``Exchange/downstreamIsReadable()`` is wanted.
    func wantsRead(_ wanted: Bool)
    /// Receives, within bounds, what comes before its turn, so that the client's going is noticed.
    /// - Returns: why it is gone; nil as long as it is there.
    func receiveAhead() -> StreamError?

    // MARK: The response's way down

    /// Writes the head as the client is to see it.
    /// - Parameters:
    ///   - requestSent: the request has been passed on to its last byte.
    ///   - edits: what else is changed in it.
    ///   - head: the scratch space that it is written to.
    /// - Returns: in which coding the body is to be written.
    func writeHead(
        of response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, into head: inout [UInt8]
    ) -> ResponseCoding

    // MARK: News

    /// Tells of connections that are tried in this one's place, perhaps after it is over.
    func attemptReport() -> AttemptReport
    /// A new connection was tried for this exchange.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination)
    /// A redirect is to be followed: decides about the place that it leads to, as about one that was asked for.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before. It gets no secrets of the rules and no client certificate.
    ///   - request: as it would be sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// An origin over https wants credentials that no rule has.
    /// - Returns: what the challenges are answered with; nil: the one who asked gets them.
    func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials?
    /// What the log is to tell of a failure, in the words in which the client is told.
    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal
    /// Called once for each ``Exchange/begin(_:to:by:over:)``, after the task's record is complete.
    func exchangeEnded(_ ending: ExchangeEnding)
}

extension Downstream {
    /// Who asked answers them.
    package func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials? { nil }
}
