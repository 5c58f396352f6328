import PinproxyHTTPWire
public import PinproxySerialization
import PinproxySession

/// A program's decisions about and observations of tasks: the blocks of AFURLSessionManager. They may use and create
/// tasks.
///
/// Decisions are async. Each has its own Swift task, which is cancelled with the session's task. Until the decision
/// nothing of the response moves; other tasks are not affected. A decision that takes longer than
/// ``SessionConfiguration/responseTimeout`` fails its task.
///
/// Observations are called on the session's thread, one at a time, and must not block.
public struct SessionHooks: Sendable {
    /// A redirect that the configuration would follow (`setTaskWillPerformHTTPRedirectionBlock:`).
    public var redirect: (@Sendable (Redirect) async -> RedirectChoice)?
    /// An https server wants credentials that no ``HostRule`` has (`setTaskDidReceiveAuthenticationChallengeBlock:`).
    /// Asked once for each origin of a task; nil: the 401 is the response. ``HostRule/policy`` alone decides about
    /// server trust.
    public var challenge: (@Sendable (AuthenticationChallenge) async -> Credentials?)?
    /// A final response begins (`setDataTaskDidReceiveResponseBlock:`).
    public var response: (@Sendable (HTTPResponse, SessionTask) async -> ResponseDisposition)?
    /// A task begins or continues (AFNetworkingTaskDidResumeNotification).
    public var resumed: (@Sendable (SessionTask) -> Void)?
    /// A task is suspended (AFNetworkingTaskDidSuspendNotification).
    public var suspended: (@Sendable (SessionTask) -> Void)?
    /// The session has ended: the last call (`setSessionDidBecomeInvalidBlock:`). Once for each
    /// ``SessionManager/reset()``, too.
    public var invalidated: (@Sendable () -> Void)?
    /// Called once for each task that began (`setTaskDidFinishCollectingMetricsBlock:`, `setTaskDidCompleteBlock:`).
    public var completed: (@Sendable (SessionTask, TaskMetrics, SessionError?) -> Void)?

    /// Creates a configuration without hooks.
    public init() {}
}

/// A redirect that could be followed.
public struct Redirect: Sendable {
    /// The redirected task.
    public let task: SessionTask
    /// The redirecting URL.
    public let from: String
    /// The method of the next request: GET instead of POST after 301, 302 and 303.
    public let method: String
    /// The target.
    public let to: String
}

extension Redirect: CustomStringConvertible {
    /// The method and both URLs without their queries, which may be secret.
    public var description: String { "\(ShownText(from)) redirects to \(method) \(ShownText(to))" }
}

/// The decision about a redirect.
public enum RedirectChoice: Sendable {
    /// Follow the redirect.
    case follow
    /// Return the redirect as the response.
    case pass
    /// Fail the task with this reason.
    case refuse(String)
    /// Send this request instead, with nothing of the redirected one.
    case replace(HTTPRequest)
}

/// A server's challenge (RFC 9110 section 11.6.1).
public struct AuthenticationChallenge: Sendable, Hashable {
    /// One of the challenge's schemes.
    public struct Offer: Sendable, Hashable {
        /// The scheme in lower case: `basic`, `digest`.
        public let scheme: String
        /// The realm as the server wrote it; nil: none.
        public let realm: String?
    }

    /// The requested URL.
    public let url: String
    /// The offers in the server's order. The strongest of Basic and Digest is answered.
    public let offers: [Offer]
}

extension AuthenticationChallenge: CustomStringConvertible {
    /// The URL without its query, and the schemes.
    public var description: String { "\(ShownText(url)) wants \(offers.map(\.scheme).joined(separator: ", "))" }
}

/// The decision after a response's head.
public enum ResponseDisposition: Sendable, Hashable {
    /// Continue the task.
    case allow
    /// Cancel the task.
    case cancel
    /// Write the body to this file, as with ``SessionManager/downloadTask(for:to:)``.
    case becomeDownload(to: String)
}
