package import PinproxyHTTPWire
package import PinproxySession

/// Answers the requests that arrive at a near door.
package protocol RequestHandler: AnyObject {
    /// A whole head arrived. Answer with ``ServerDoor/refuseRequest(_:)``, ``HTTP1Server/answer(_:then:)`` or
    /// ``ServerDoor/begin(to:by:over:)``, at once or later.
    func received(by door: ServerDoor)
    /// The bytes that arrived are no request. Answer with ``ServerDoor/refuseUnreadable(_:)``, at once or later.
    func receivedUnreadable(_ error: ProxyError, by door: ServerDoor)
    /// Decides whether a redirect of the exchange may be followed, as if the client had asked for its target.
    /// - Parameters:
    ///   - isAbroad: another origin was asked before, so the target gets no secret.
    ///   - request: as it would be sent there, with the whole URL.
    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling
    /// Reports connection attempts for the current request. Other tasks may make them, even after the handler's end.
    func attemptReport() -> AttemptReport
    /// A connection was tried for a request.
    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>)
    /// The owner of a stored private response; nil: unknown, so that it isn't stored.
    var cacheOwner: CacheKey.Owner? { get }
    /// Refused, or failed before any byte of an answer.
    func refused(_ error: ProxyError)
    /// The deadline that the handler set for its request has passed.
    func timedOut(_ door: ServerDoor)
    /// The client closed while the request was held.
    func clientHasGone(_ why: String)
}

extension RequestHandler {
    package func receivedUnreadable(_ error: ProxyError, by door: ServerDoor) { door.refuseUnreadable(error) }
    package func refused(_ error: ProxyError) {}
    package var cacheOwner: CacheKey.Owner? { nil }
    package func timedOut(_ door: ServerDoor) { door.abort() }
    package func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        .pass
    }
    package func attemptReport() -> AttemptReport { { _ in } }
    package func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>) {}
}

/// Limits of servers, shared by those of a worker.
package final class ServerSettings {
    package var idle: Duration
    package var idleNanoseconds: UInt64
    /// For the beginning of the next request.
    package var requestNanoseconds: UInt64
    package var requestHead = 16 << 10

    package init(waiting patience: Duration = .zero) {
        idle = patience
        idleNanoseconds = patience.nanoseconds
        requestNanoseconds = patience.nanoseconds
    }
}
