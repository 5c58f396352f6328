import FoundationEssentials
public import PinproxySecurity
public import PinproxySerialization
import PinproxySession

/// The settings of a ``SessionManager``: NSURLSessionConfiguration, with AFSecurityPolicy for each host.
///
/// ```swift
/// var configuration = SessionConfiguration()
/// configuration.hosts = [
///     HostRule(
///         try HostPattern("api.example.com"),
///         policy: SecurityPolicy(
///             mode: .publicKey, pins: PinSet([try Pin(text: "sha256/…", for: .publicKey)])))
/// ]
/// let session = try SessionManager(configuration: configuration)
/// ```
public struct SessionConfiguration: Sendable {
    /// The rules for hosts; the most specific pattern wins. Other hosts are verified with ``trust``.
    public var hosts: [HostRule] = []
    /// The trust anchors for hosts without anchors in their policy.
    public var trust = TrustSource.system
    /// The base of relative URLs; a final slash is added (AFHTTPSessionManager). A pinned host needs https.
    public var baseURL: String?
    /// The proxy for all connections; nil: none. Variables such as `https_proxy` are not read.
    public var proxy: ProxyServer?
    /// The policy for redirects, applied before ``SessionHooks/redirect``.
    public var redirects = RedirectPolicy.follow
    /// Most redirects of a task, up to 255.
    public var maximumRedirects = 20
    /// Whether interrupted downloads are resumed, if the server supports ranges with a strong validator (`If-Range`).
    public var resumesBrokenDownloads = true
    /// The default User-Agent; nil: none.
    public var userAgent: String? = "pinproxy"
    /// The default Accept-Language, best first; empty: none. From the environment's locale, as at the configuration's
    /// creation.
    public var languages = LanguageRange.preferred(in: ProcessInfo.processInfo.environment)
    /// Whether collected and streamed bodies are requested in gzip or deflate, and decoded. Not if a request
    /// sets Accept-Encoding or Range, and not for downloads to a file.
    public var decodesBodies = true
    /// The cookie store; nil: cookies are ignored. Sessions may share one.
    public var cookies: CookieStore?
    /// The store of responses (RFC 9111), for this session alone.
    public var cache = CacheStorage.none

    /// Most concurrent requests to a host over HTTP/1.1, each with a connection (`httpMaximumConnectionsPerHost`).
    /// Others wait for their turn, in order and without a timeout. HTTP/2 has no such limit.
    public var maximumConnectionsPerHost = 6
    /// The time limit for name resolution and the TCP connection.
    public var connectTimeout: Duration = .seconds(10)
    /// The time limit of a TLS handshake.
    public var tlsTimeout: Duration = .seconds(10)
    /// The time limit from the end of the request to the first byte of the response (`timeoutIntervalForRequest`), and
    /// for each decision of a hook.
    public var responseTimeout: Duration = .seconds(60)
    /// The time limit without a byte in either direction.
    public var idleTimeout: Duration = .seconds(75)
    /// How long idle connections are kept.
    public var keepAlive: Duration = .seconds(60)
    /// Most bytes of a body for ``SessionManager/data(for:)``. Longer ones fail: download them to a file.
    public var maximumBodyLength = 64 << 20
    /// Most bytes of all bodies that are being collected. A body beyond fails; complete ones don't count.
    public var maximumBodiesLength = 256 << 20
    /// Most bytes of a response's head.
    public var maximumHeadLength = 256 << 10

    /// Creates a configuration with the system's trust anchors and no pins.
    public init() {}
}

/// The policy and credentials of hosts that a pattern matches.
public struct HostRule: Sendable {
    /// The hosts that the rule applies to.
    public var pattern: HostPattern
    /// The policy of the hosts. Contradictory policies are configuration errors, as is plain HTTP to a host with pins.
    public var policy: SecurityPolicy
    /// The credentials for Basic and Digest challenges over https. A request's own Authorization is kept.
    public var credentials: Credentials?
    /// The client certificate for these hosts. Redirects from other origins to them are not followed.
    public var clientCertificate: ClientCertificate?

    /// - Parameters:
    ///   - pattern: the hosts.
    ///   - policy: by default the trust anchors verify, without pins.
    ///   - credentials: sent only to these hosts over https.
    ///   - clientCertificate: presented to these hosts alone.
    public init(
        _ pattern: HostPattern, policy: SecurityPolicy = SecurityPolicy(), credentials: Credentials? = nil,
        clientCertificate: ClientCertificate? = nil
    ) {
        self.pattern = pattern
        self.policy = policy
        self.credentials = credentials
        self.clientCertificate = clientCertificate
    }
}

/// A store of responses.
public enum CacheStorage: Sendable, Hashable {
    /// No response is stored.
    case none
    /// Responses are stored in memory, up to this many bytes.
    case memory(bytes: Int)
    /// Responses are stored in a directory, up to this many bytes; made if missing, for this user alone. One session at
    /// a time uses it: in others nothing is stored meanwhile.
    case disk(directory: String, bytes: Int)
}

/// Certificates that may anchor chains.
public struct TrustSource: Sendable, Hashable {
    let includesSystem: Bool
    let files: [String]

    /// The system's bundle when the session is made. SSL_CERT_FILE is not read.
    public static let system = TrustSource(includesSystem: true, files: [])

    /// Trusts the certificates of PEM files only.
    public static func files(_ paths: [String]) -> TrustSource { TrustSource(includesSystem: false, files: paths) }

    /// The system's, and those of PEM files.
    public static func system(and paths: [String]) -> TrustSource { TrustSource(includesSystem: true, files: paths) }
}

/// An HTTP proxy, with CONNECT for https.
public struct ProxyServer: Sendable, Hashable {
    /// A name, or an address without brackets.
    public var host: String
    /// The proxy's TCP port.
    public var port: UInt16
    /// Credentials for Basic; sent only to the proxy.
    public var credentials: Credentials?

    /// - Parameters:
    ///   - host: a name, or an address without brackets.
    ///   - port: its TCP port.
    ///   - credentials: for Basic; sent only to the proxy.
    public init(host: String, port: UInt16, credentials: Credentials? = nil) {
        self.host = host
        self.port = port
        self.credentials = credentials
    }
}

/// The treatment of redirects (301, 302, 303, 307 and 308 with a Location).
public enum RedirectPolicy: Sendable, Hashable {
    /// The redirect is the response.
    case pass
    /// Follow redirects by RFC 9110 section 15.4. Each target has its own policy, pins and credentials. Authorization
    /// and Cookie are dropped for another origin, and https never redirects to http.
    case follow
    /// Fail the task.
    case refuse
}
