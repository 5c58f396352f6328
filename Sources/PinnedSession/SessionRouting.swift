import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxySession
import PinproxyTLS

/// A checked ``SessionConfiguration``: destinations of requests, and their rules.
struct SessionRouting: Sendable {
    struct Place: Sendable {
        let policy: SecurityPolicy
        let rules: ExchangeRules
        /// With a client certificate; nil: as other hosts.
        var tls: ClientTLS?
    }

    private let places: HostTable<Place>
    private let elsewhere: Place
    private let upstream: UpstreamSettings
    private let terms: ExchangeTerms
    private let base: RequestURL?
    /// Fields of requests without them.
    private let defaults: [(name: String, value: String)]
    private let decodesBodies: Bool
    /// For a decision of a hook.
    let patience: Duration
    let longestBody: Int
    /// Most bytes of the bodies being collected.
    let longestBodies: Int
    let redirectLimit: Int

    init(_ configuration: SessionConfiguration) throws(SessionError) {
        let rules = configuration.hosts
        for rule in rules {
            if let problem = rule.policy.contradictions.first { throw .configuration("\(rule.pattern): \(problem)") }
        }
        let patterns = HostPatterns.number(rules.map(\.pattern))
        if let duplicate = patterns.duplicates.first {
            throw .configuration("\(rules[duplicate.later].pattern) has two rules: write one")
        }
        var made: [Place] = []
        for rule in rules { made.append(try Self.place(of: rule, configuration)) }
        places = patterns.table(of: made)
        elsewhere = Place(policy: SecurityPolicy(), rules: Self.rules(configuration, credentials: nil))
        upstream = UpstreamSettings(
            anchors: try Self.anchors(configuration.trust), parent: try Self.parent(configuration.proxy))
        var timeouts = Timeouts()
        timeouts.connect = configuration.connectTimeout
        timeouts.tlsHandshake = configuration.tlsTimeout
        timeouts.firstByte = configuration.responseTimeout
        timeouts.idleClient = configuration.idleTimeout
        timeouts.idleUpstream = configuration.keepAlive
        var limits = Limits()
        limits.responseHead = max(configuration.maximumHeadLength, 1024)
        // The program decides what is too slow.
        limits.minimumRate = nil
        terms = ExchangeTerms(timeouts: timeouts, limits: limits)
        longestBody = max(configuration.maximumBodyLength, 0)
        longestBodies = max(configuration.maximumBodiesLength, 0)
        redirectLimit = configuration.maximumRedirects
        if let agent = configuration.userAgent, (try? HeaderValue(agent)) == nil {
            throw .configuration("userAgent: \(agent.debugDescription) can't be the value of a field")
        }
        var defaults: [(name: String, value: String)] = []
        if let agent = configuration.userAgent { defaults.append(("User-Agent", agent)) }
        if let languages = LanguageRange.acceptLanguage(configuration.languages) {
            defaults.append(("Accept-Language", languages.text))
        }
        self.defaults = defaults
        decodesBodies = configuration.decodesBodies
        patience = configuration.responseTimeout
        base = try configuration.baseURL.map { (text) throws(SessionError) in try Self.base(text) }
        if let base, !base.isSecure, place(of: base.authority).policy.mode != .none {
            let host = base.authority.host
            throw .configuration("baseURL: \(host) has pins, and http:// can't be pinned: write https://")
        }
    }

    private static func place(
        of rule: HostRule, _ configuration: SessionConfiguration
    ) throws(SessionError) -> Place {
        var place = Place(policy: rule.policy, rules: rules(configuration, credentials: rule.credentials))
        guard let certificate = rule.clientCertificate else { return place }
        let identity = try certificate.load()
        do {
            place.tls = try ClientTLS(requirements: rule.policy.requirements, identity: identity)
        } catch {
            throw .configuration("\(rule.pattern): clientCertificate: \(error)")
        }
        return place
    }

    private static func rules(_ configuration: SessionConfiguration, credentials: Credentials?) -> ExchangeRules {
        var rules = SessionRules()
        rules.redirects =
            switch configuration.redirects {
            case .pass: .pass
            case .follow: .follow
            case .refuse: .refuse
            }
        rules.maxRedirects = configuration.maximumRedirects
        rules.maxConnections = max(configuration.maximumConnectionsPerHost, 1)
        rules.followTo = .anywhere
        rules.locationField = false
        rules.credentials = credentials.map { ChallengeCredentials($0) }
        rules.resume = configuration.resumesBrokenDownloads
        return ExchangeRules(session: rules, cache: configuration.cache.terms, answersChallenges: true)
    }

    private static func anchors(_ trust: TrustSource) throws(SessionError) -> TrustAnchors {
        do {
            return try TrustAnchors.load(system: trust.includesSystem, files: trust.files)
        } catch {
            throw .configuration("trust: \(error)")
        }
    }

    private static func parent(_ proxy: ProxyServer?) throws(SessionError) -> ParentProxy? {
        guard let proxy else { return nil }
        let host = proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host
        guard case .success(let authority) = Authority.parse(host, defaultPort: proxy.port), proxy.port > 0 else {
            throw .configuration("proxy: \(proxy.host.debugDescription) is not a host")
        }
        return ParentProxy(
            host: authority.host, port: proxy.port, authorization: proxy.credentials?.basicAuthorization.text)
    }

    private static func base(_ text: String) throws(SessionError) -> RequestURL {
        do {
            let url = try RequestURL(text)
            // Relative URLs go below it, not beside its last segment.
            let path = Array(url.target.prefix { $0 != UInt8(ascii: "?") })
            let slash = UInt8(ascii: "/")
            return RequestURL(
                isSecure: url.isSecure, authority: url.authority, target: path.last == slash ? path : path + [slash])
        } catch {
            throw .configuration("baseURL: \(error.explanation(of: "the URL"))")
        }
    }

    // MARK: Requests

    private static let codings = "gzip, deflate"

    func url(of request: HTTPRequest) throws(SessionError) -> RequestURL {
        do {
            // An empty reference would be an error in a redirect.
            if request.url.isEmpty, let base { return base }
            return try RequestURL(request.url, relativeTo: base)
        } catch {
            throw .invalidRequest("\(request): \(error.explanation(of: "the URL"))")
        }
    }

    private func place(of authority: Authority) -> Place {
        places.value(forHost: authority.host, port: authority.port) ?? elsewhere
    }

    /// - Parameter timeout: of the request; nil: the session's.
    func destination(
        of url: RequestURL, within timeout: Duration?, over pool: UpstreamPool
    ) throws(SessionError) -> (Destination, ExchangeRules) {
        let authority = url.authority.canonical
        let place = place(of: authority)
        if !url.isSecure, place.policy.mode != .none { throw .plainToPinnedHost(authority.host) }
        let layer: UpstreamTarget.Layer =
            url.isSecure ? .tls(place.policy, upstream.anchors, ServerName(host: authority.host)) : .plain
        let target = UpstreamTarget(
            host: authority.host, port: authority.port, layer: layer, upstream: upstream,
            tls: url.isSecure ? place.tls : nil)
        let destination = Destination(
            authority: authority, target: target, origin: pool.origin(for: target.key),
            terms: timeout.map(terms(within:)) ?? terms, via: nil)
        return (destination, place.rules)
    }

    private func terms(within timeout: Duration) -> ExchangeTerms {
        var timeouts = terms.timeouts
        timeouts.firstByte = max(timeout, .zero)
        timeouts.idleClient = timeouts.firstByte
        return ExchangeTerms(timeouts: timeouts, limits: terms.limits)
    }

    /// Whether a response is asked for in codings that the session undoes.
    func offersCodings(_ request: HTTPRequest, for purpose: SessionTask.Purpose) -> Bool {
        if case .download = purpose { return false }
        return decodesBodies && !request.has("accept-encoding") && !request.has("range")
            && request.method.description != "HEAD"
    }

    /// As a proxy's client sends it; the next hop's form is decided later.
    /// - Parameter cookie: of the store; nil for a request that sets cookies.
    func head(
        of request: HTTPRequest, to url: RequestURL, bodyLength: BodyLength, offersCodings: Bool, cookie: String?
    ) throws(SessionError) -> OwnedRequest {
        var head = Array("\(request.method) \(url) HTTP/1.1\r\nHost: \(url.origin.host)\r\n".utf8)
        for (name, value) in defaults where !request.has(name.lowercased()) { head += "\(name): \(value)\r\n".utf8 }
        if offersCodings { head += "Accept-Encoding: \(Self.codings)\r\n".utf8 }
        let type = request.body.contentType
        let setsType = type != nil && (request.body.isForm || !request.has("content-type"))
        for field in request.fields {
            if setsType, field.name.description.lowercased() == "content-type" { continue }
            head += "\(field.name): \(field.value.text)\r\n".utf8
        }
        if setsType, let type { head += "Content-Type: \(type)\r\n".utf8 }
        if let cookie { head += "Cookie: \(cookie)\r\n".utf8 }
        switch bodyLength {
        case .known(let length): head += "Content-Length: \(length)\r\n".utf8
        case .unknown: head += "Transfer-Encoding: chunked\r\n".utf8
        case .none: break
        }
        head += "\r\n".utf8
        do {
            return try OwnedRequest(head)
        } catch {
            throw .invalidRequest("\(request): \(error.message)")
        }
    }
}
