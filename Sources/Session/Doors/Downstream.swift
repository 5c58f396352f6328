package import PinproxyHTTPWire
package import PinproxySerialization

/// Reports a connection attempt.
package typealias AttemptReport = (Result<UpstreamConnection, UpstreamFailure>) -> Void

package enum RedirectRuling {
    /// - Parameter rules: shape the request there and judge the response.
    case follow(Destination, ExchangeRules?)
    /// The proxy can't follow it as the client would: the client gets the redirect.
    case pass
    /// Forbidden, with a human-readable reason.
    case refuse(String)
    /// Impossible, with a human-readable reason.
    case fail(String)
}

package enum CookieRuling {
    /// The client's own, within its origin.
    case kept
    /// Nil: no field.
    case replaced(by: String?)
}

/// How an exchange ended, for its downstream.
package enum ExchangeEnding {
    /// The whole response was delivered. `keeping`: an upstream bound to this client (NTLM, Negotiate).
    case finished(keeping: HTTP1Upstream?)
    /// No part of a response was delivered.
    case refused(ExchangeFailure, Destination)
    /// Only a part was delivered. `because`: nil if the origin just closed.
    case cut(Cut, because: ExchangeFailure?)
    /// `101 Switching Protocols` was delivered.
    case switched(HTTP1Upstream)
}

package enum Cut: Sendable {
    /// Deliver what was passed on, then show the client that the response is incomplete.
    case delivered
    case reset
}

/// The client's side of an exchange: a connection, a stream of one, a report, a Swift program. It holds its exchange,
/// and is called on the exchange's loop.
package protocol Downstream: AnyObject {
    /// Borrows the request's head, valid until the body moves or the final response begins.
    func withRequest(_ body: (borrowing RequestView) -> Void)
    var requestBody: any BodySource { get }
    /// Whether ``Exchange/downstreamIsReadable()`` is wanted.
    func wantsRead(_ wanted: Bool)

    /// Takes a response's head with these edits, and returns the sink of its body.
    /// - Parameter requestSent: the whole request was passed on.
    func respond(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink

    var guide: any ExchangeGuide { get }
    /// Called once for each ``Exchange/begin(_:to:by:over:)``, after the task's record is complete.
    func exchangeEnded(_ ending: ExchangeEnding)
}

/// Decides for the downstream, and receives each connection attempt.
package protocol ExchangeGuide: AnyObject {
    /// A report for attempts made on this exchange's behalf, valid after its end.
    func attemptReport() -> AttemptReport
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination)
    /// Decides whether a redirect may be followed, as for a direct request.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before: no secrets of the rules, no client certificate.
    ///   - request: as sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// Credentials for an https origin without a rule's; nil: pass the challenges on.
    func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials?
    /// True while ``route(to:isAbroad:for:)`` or ``credentials(for:at:)`` can't answer yet. They are asked again after
    /// ``Exchange/decided()``.
    var isDeciding: Bool { get }
    /// Receives each final head of an origin, in exchanges that may follow redirects. Not one from the cache.
    func received(_ response: borrowing ResponseView, from url: RequestURL)
    /// The Cookie field of a request after a redirect.
    func cookie(for url: RequestURL) -> CookieRuling
    /// The owner of a stored private response; nil: unknown, so that it isn't stored.
    var cacheOwner: CacheKey.Owner? { get }
    /// The log's words for a failure, as in the client's response.
    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal
}

extension ExchangeGuide {
    /// The client answers them.
    package func credentials(for challenges: [Challenge], at url: RequestURL) -> Credentials? { nil }
    package var isDeciding: Bool { false }
    package func received(_ response: borrowing ResponseView, from url: RequestURL) {}
    package func cookie(for url: RequestURL) -> CookieRuling { .kept }
    package func attemptReport() -> AttemptReport { { _ in } }
    package var cacheOwner: CacheKey.Owner? { nil }
    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {}
    /// The client decides whether to follow it.
    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        .pass
    }
}
