public import Serialization
import Session

/// What a program decides, or observes, of a session's tasks: the blocks of AFURLSessionManager. All are called on the
/// session's own thread, one at a time, and must not wait. They may use tasks and make others.
public struct SessionHooks: Sendable {
    /// A redirect is to be followed (`setTaskWillPerformHTTPRedirectionBlock:`). Asked after the configuration, for
    /// redirects that it follows and that could be.
    public var redirect: (@Sendable (Redirect) -> RedirectChoice)?
    /// A server over https wants credentials that no ``HostRule`` has
    /// (`setTaskDidReceiveAuthenticationChallengeBlock:`). Asked once for each origin of a task; nil: the 401 is the
    /// response. Server trust is never asked about: it is for the ``HostRule/policy``.
    public var challenge: (@Sendable (AuthenticationChallenge) -> Credentials?)?
    /// A final response begins (`setDataTaskDidReceiveResponseBlock:`).
    public var response: (@Sendable (HTTPResponse, SessionTask) -> ResponseDisposition)?
    /// A task is over (`setTaskDidFinishCollectingMetricsBlock:` and `setTaskDidCompleteBlock:`): called once for each
    /// that began.
    public var completed: (@Sendable (SessionTask, TaskMetrics, SessionError?) -> Void)?

    /// Nothing is decided or heard.
    public init() {}
}

/// A redirect that could be followed.
public struct Redirect: Sendable {
    /// Whose it is.
    public let task: SessionTask
    /// Where it comes from.
    public let from: String
    /// The method that it would be followed with: GET in the place of POST after 301, 302 and 303.
    public let method: String
    /// Where it leads.
    public let to: String
}

/// What becomes of a redirect.
public enum RedirectChoice: Sendable {
    /// It is followed.
    case follow
    /// It is the response.
    case pass
    /// The task fails; why, for people.
    case refuse(String)
    /// This request is made in its place. It carries nothing over from the one that was redirected.
    case replace(HTTPRequest)
}

/// A server's wish for credentials (RFC 9110 section 11.6.1).
public struct AuthenticationChallenge: Sendable, Hashable {
    /// What is asked for; a response may offer several.
    public struct Offer: Sendable, Hashable {
        /// In lower case: `basic`, `digest`.
        public let scheme: String
        /// As the server wrote it; nil: it didn't.
        public let realm: String?
    }

    /// The URL that was asked.
    public let url: String
    /// In the order of the server. Basic and Digest can be answered; the strongest is.
    public let offers: [Offer]
}

/// What becomes of a response whose head has arrived.
public enum ResponseDisposition: Sendable, Hashable {
    /// It goes on.
    case allow
    /// The task is cancelled.
    case cancel
    /// Its body goes to this file, as with ``SessionManager/download(for:to:)``.
    case becomeDownload(to: String)
}
