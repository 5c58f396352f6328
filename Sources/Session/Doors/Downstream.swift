package import HTTPWire
package import Serialization

/// Tells of a connection that was tried.
package typealias AttemptReport = (Result<UpstreamConnection, UpstreamFailure>) -> Void

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
    /// The whole response has been passed on. `keeping`: the upstream now bound to this client (NTLM, Negotiate).
    case finished(keeping: UpstreamConnection?)
    /// Nothing of a response was passed on.
    case refused(ExchangeFailure, Destination)
    /// What was passed on is not the whole.
    case cut(Cut)
    /// `101 Switching Protocols` has been passed on to its last byte.
    case switched(UpstreamConnection)
}

package enum Cut: Sendable {
    /// All that came was passed on: it is to arrive, and then the client is to see that something is missing.
    case delivered
    case reset
}

/// The near door of an exchange: a client's connection, a stream of one, a report, a Swift program.
///
/// It keeps its exchange, and is called on the exchange's loop.
package protocol Downstream: AnyObject {
    /// Lends the request's head. It is valid until the body moves or the final response begins.
    func withRequest(_ body: (borrowing RequestView) -> Void)
    var requestBody: any BodySource { get }
    /// Whether ``Exchange/downstreamIsReadable()`` is wanted.
    func wantsRead(_ wanted: Bool)

    /// Takes the head of a response, with these edits, and returns where the body goes.
    /// - Parameter requestSent: the request has been passed on to its last byte.
    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink

    var guide: any ExchangeGuide { get }
    /// Called once for each ``Exchange/begin(_:to:by:over:)``, after the task's record is complete.
    func exchangeEnded(_ ending: ExchangeEnding)
}

/// Decides on behalf of the downstream, and hears of each connection attempt.
package protocol ExchangeGuide: AnyObject {
    /// Tells of connections that are tried in this one's place, perhaps after it has ended.
    func attemptReport() -> AttemptReport
    /// A new connection was tried for this exchange.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination)
    /// Decides whether a redirect may be followed, as for a place that was asked for.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before: no secrets of the rules, no client certificate.
    ///   - request: as it would be sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// Credentials for an https origin that no rule has; nil: the challenges are passed on.
    func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials?
    /// What the log is to tell of a failure, in the words in which the client is told.
    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal
}

extension ExchangeGuide {
    /// Who asked answers them.
    package func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials? { nil }
    package func attemptReport() -> AttemptReport { { _ in } }
    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {}
    /// The downstream decides whether to follow it.
    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling { .pass }
}
