package import PinproxyHTTPWire
package import PinproxySecurity
package import PinproxySerialization

/// `session` in pins.yaml, with the defaults.
package struct SessionRules: Sendable, Hashable {
    package enum Key: String, Sendable, CaseIterable {
        case timeout
        case minimumRate = "minimum_rate"
        case redirects
        case maxRedirects = "max_redirects"
        case followTo = "follow_to"
        case credentials, resume, coalesce
        case coalesceWith = "coalesce_with"
        case maxActive = "max_active"
        case order
        case serviceType = "service_type"
        case allowWWAN = "allow_wwan"
        case baseURL = "base_url"
        case locationField = "location_field"
        case http, ping

        /// The key concerns requests and responses, so it has no effect on tunnels.
        package var isOfExchanges: Bool {
            switch self {
            case .minimumRate, .redirects, .maxRedirects, .followTo,
                .credentials, .resume, .coalesce, .coalesceWith, .maxActive, .order, .baseURL,
                .locationField, .http, .ping:
                true
            case .timeout, .serviceType, .allowWWAN: false
            }
        }
    }

    /// A field that makes a request specific to a user, or to a part.
    package enum PersonalField: String, Sendable, CaseIterable, CustomStringConvertible {
        case authorization, cookie, range

        package var description: String { rawValue }
    }

    package enum Redirects: String, Sendable, CaseIterable {
        case pass, follow, refuse
    }

    /// Redirect targets, besides the same origin.
    package enum FollowTo: Sendable, Hashable {
        case named([HostPattern])
        case anywhere

        func includes(_ authority: Authority) -> Bool {
            switch self {
            case .anywhere: return true
            case .named(let patterns):
                let canonical = authority.canonical
                return patterns.contains { $0.matches(host: canonical.host, port: canonical.port) }
            }
        }
    }

    package enum Order: String, Sendable, CaseIterable {
        case fifo, lifo
    }

    package enum ServiceType: String, Sendable, CaseIterable {
        case `default`, background, voice, video, responsive

        /// The DSCP mark of the upstream socket (RFC 4594): CS0, CS1, EF, AF41, AF21.
        package var dscp: UInt8 {
            switch self {
            case .default: 0
            case .background: 8
            case .voice: 46
            case .video: 34
            case .responsive: 18
            }
        }
    }

    /// Without a byte in either direction.
    package var timeout: Duration = .seconds(60)
    /// The minimum rate of bodies; nil: any rate.
    package var minimumRate: MinimumRate?
    package var redirects = Redirects.pass
    package var maxRedirects = 20
    package var followTo = FollowTo.named([])
    /// A response after redirects names its URL in `Pinproxy-Location`.
    package var locationField = true
    package var credentials: ChallengeCredentials?
    package var resume = true
    /// Send identical GETs in flight once.
    package var coalesce = false
    /// Also requests with these fields, if equal in them.
    package var coalesceWith: [PersonalField] = []
    /// Concurrent exchanges with the host; nil: any number.
    package var maxActive: Int?
    package var order = Order.fifo
    /// Concurrent exchanges over HTTP/1.1, where each takes a connection; nil: any number. Of the library,
    /// not of a pin file.
    package var maxConnections: Int?
    package var serviceType = ServiceType.default
    /// False: refused while reachability says WWAN.
    package var allowWWAN = true
    /// Where `http://` requests to the host go.
    package var baseURL: BaseURL?
    /// Protocols offered to the origin by ALPN, best first.
    package var http = HTTPProtocol.usual
    /// How often an HTTP/2 connection in use is probed by a PING; nil: never.
    package var ping: Duration?

    package init() {}
}

/// A name and password for challenges (`session.credentials`).
package struct ChallengeCredentials: Sendable, Hashable {
    private let credentials: AnsweringCredentials
    /// Also over `http://`, where Basic's password is sent in the clear, and Digest can be downgraded to it.
    package let allowsHTTP: Bool

    /// - Parameter edition: version of the password file.
    package init(_ credentials: Credentials, allowsHTTP: Bool = false, edition: Int = 0) {
        self.credentials = AnsweringCredentials(credentials, edition: edition)
        self.allowsHTTP = allowsHTTP
    }

    package var user: String { credentials.credentials.user }

    /// The credentials that may be sent there, if any.
    package func usable(at origin: RequestURL.Origin) -> AnsweringCredentials? {
        origin.isSecure || allowsHTTP ? credentials : nil
    }
}

/// A base for relative URLs.
package struct BaseURL: Sendable, Hashable, CustomStringConvertible {
    package let isSecure: Bool
    package let authority: Authority
    /// As sent, between slashes, so that relative paths go below it, as with AFHTTPSessionManager.
    package let path: String

    /// - Parameter path: percent-encoded; begins with a slash.
    package init(isSecure: Bool, authority: Authority, path: String) {
        self.isSecure = isSecure
        self.authority = authority
        self.path = path.hasSuffix("/") ? path : path + "/"
    }

    package var origin: RequestURL.Origin { RequestURL.Origin(isSecure: isSecure, authority: authority) }
    package var description: String { "\(origin)\(path)" }

    /// The whole URL of a relative request; nil for a path that some servers read as above the base (`/../x`).
    /// - Parameter target: path and query, relative despite its leading slash.
    package func url(of target: ArraySlice<UInt8>) -> [UInt8]? {
        // `*` means the server, which the base stands for.
        if target == [UInt8(ascii: "*")] { return Array(description.utf8) }
        if path != "/" {
            var readings = PathReadings()
            let path = target.first == UInt8(ascii: "/") ? Array(target) : Array("/".utf8 + target)
            readings.take(path.span)
            if readings.mayLeaveRoot() { return nil }
        }
        return Array(description.utf8) + (target.first == UInt8(ascii: "/") ? target.dropFirst() : target)
    }
}
