public import Security
public import Serialization
import Session

/// How a ``SessionManager`` reaches servers: NSURLSessionConfiguration, with AFSecurityPolicy for each host.
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
    /// What holds for some hosts; the most specific pattern decides alone (``HostPattern``). For other hosts the trust
    /// anchors vouch.
    public var hosts: [HostRule] = []
    /// Whom chains must lead to.
    public var trust = TrustSource.system
    /// What requests' URLs may be relative to; it gets a slash at its end, so that they go below it
    /// (AFHTTPSessionManager). A pinned host needs https.
    public var baseURL: String?
    /// A proxy for all connections; nil: there is none. Variables like `https_proxy` are not read.
    public var proxy: ProxyServer?
    /// What becomes of redirects, before ``SessionHooks/redirect`` is asked.
    public var redirects = RedirectPolicy.follow
    /// Redirects that are followed one after another, at most; 255 are the most.
    public var maximumRedirects = 20
    /// A download that breaks off is continued where the server gives ranges and a strong validator (`If-Range`).
    public var resumesBrokenDownloads = true
    /// The value of User-Agent where a request has none; nil: none is sent.
    public var userAgent: String? = "pinproxy"

    /// Name look-up and TCP connection together.
    public var connectTimeout: Duration = .seconds(10)
    /// A TLS handshake.
    public var tlsTimeout: Duration = .seconds(10)
    /// From the end of the request to the first byte of the response (`timeoutIntervalForRequest`).
    public var responseTimeout: Duration = .seconds(60)
    /// Without a byte in either direction.
    public var idleTimeout: Duration = .seconds(75)
    /// How long a connection waits for another request.
    public var keepAlive: Duration = .seconds(60)
    /// Bytes of a body that ``SessionManager/data(for:)`` collects, at most. Longer ones fail: download them to a file.
    public var maximumBodyLength = 64 << 20
    /// Bytes that all bodies have together while they are being collected, at most. A body that would need more fails;
    /// one that is complete doesn't count any more.
    public var maximumBodiesLength = 256 << 20
    /// Bytes of a response's head, at most.
    public var maximumHeadLength = 256 << 10

    /// The machine's trust anchors for every host, and no pins.
    public init() {}
}

/// What holds for the hosts of one pattern.
public struct HostRule: Sendable {
    /// Whom it is for.
    public var pattern: HostPattern
    /// Who a server must be. A policy that contradicts itself is an error of the configuration, and so is plain HTTP
    /// to a host with pins.
    public var policy: SecurityPolicy
    /// What Basic and Digest challenges of these hosts over https are answered with. A request that brings its own
    /// Authorization keeps it.
    public var credentials: Credentials?

    /// - Parameters:
    ///   - policy: by default the trust anchors vouch, and nothing is pinned.
    ///   - credentials: sent to these hosts alone, and over https alone.
    public init(_ pattern: HostPattern, policy: SecurityPolicy = SecurityPolicy(), credentials: Credentials? = nil) {
        self.pattern = pattern
        self.policy = policy
        self.credentials = credentials
    }
}

/// Which certificates chains may end at.
public struct TrustSource: Sendable, Hashable {
    let includesSystem: Bool
    let files: [String]

    /// The machine's, as its bundle has them when the session is made. SSL_CERT_FILE is not read.
    public static let system = TrustSource(includesSystem: true, files: [])

    /// Those of PEM files alone.
    public static func files(_ paths: [String]) -> TrustSource { TrustSource(includesSystem: false, files: paths) }

    /// The machine's, and those of PEM files.
    public static func system(and paths: [String]) -> TrustSource { TrustSource(includesSystem: true, files: paths) }
}

/// An HTTP proxy that connections go through: with CONNECT for https.
public struct ProxyServer: Sendable, Hashable {
    /// A name, or an address without brackets.
    public var host: String
    /// Its TCP port.
    public var port: UInt16
    /// For Basic; sent to the proxy alone.
    public var credentials: Credentials?

    /// - Parameter host: a name, or an address without brackets.
    public init(host: String, port: UInt16, credentials: Credentials? = nil) {
        self.host = host
        self.port = port
        self.credentials = credentials
    }
}

/// What becomes of redirects (301, 302, 303, 307 and 308 with a Location).
public enum RedirectPolicy: Sendable, Hashable {
    /// The redirect is the response.
    case pass
    /// As RFC 9110 section 15.4 says. Each place is decided about as one that was asked for: its policy, its pins, its
    /// credentials. Authorization and Cookie stay behind where the origin changes, and https never leads to http.
    case follow
    /// The task fails.
    case refuse
}
