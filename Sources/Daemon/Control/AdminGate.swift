import Configuration
import HTTPWire
import TLS

/// Says what a request may ask for: over the control socket everything, over the admin port what its settings allow.
///
/// Any web page can make a browser send requests to the admin port, and by DNS rebinding read the answers. So the port
/// answers only to addresses, `localhost` and its configured names, and to no other site's page (Fetch Metadata).
struct AdminGate: Sendable {
    enum Right: Int, Comparable, Sendable {
        /// What anybody may know: that the proxy is there, and what clients fetch from it.
        case fetch
        /// What the proxy does and by which settings.
        case read
        case change
        /// What only the control socket is for.
        case own

        static func < (one: Right, other: Right) -> Bool { one.rawValue < other.rawValue }
    }

    private let token: SHA256Digest?
    private let hosts: Set<String>

    init(_ settings: AdminSettings) {
        token = settings.token
        hosts = Set(settings.hosts)
    }

    /// Why a request that needs `right` isn't answered; nil: it is.
    func objection(to request: ControlRequest, needing right: Right) -> ControlResponse? {
        guard case .port = request.door else { return nil }
        // Only a browser is led here by a name, and it always says which.
        if let host = request.host, !isOwn(host) {
            return .problem(
                421,
                "the admin port does not answer to the name \(ShownText(host)): ask for it by its address or as localhost, or add "
                    + "the name to admin.hosts")
        }
        // Pages of other ports of this machine are of the same site, and nothing to the admin port.
        if let site = request.fetchSite, site != "same-origin", site != "none" {
            return .problem(
                403,
                "another site's page has led the browser here (Sec-Fetch-Site: \(ShownText(site))), and the admin port answers to none: "
                    + "type the address into the browser")
        }
        switch right {
        case .fetch: return nil
        case .own: return .problem(403, "only the control socket answers this: use the pinproxy command")
        case .change where token == nil:
            return .problem(
                403, "the admin port changes nothing without a token: use the pinproxy command, or set admin.token_file")
        case .read where token == nil: return nil
        case .read, .change: return holdsToken(request) ? nil : Self.unauthorized
        }
    }

    /// Whether it may be shown what is only for those who control the proxy, e.g. the paths of requests.
    func mayControl(_ request: ControlRequest) -> Bool {
        switch request.door {
        case .socket: true
        case .port: token != nil && holdsToken(request)
        }
    }

    private static let unauthorized: ControlResponse = {
        var response = ControlResponse.problem(
            401, "the admin port wants the token of admin.token_file, as Authorization: Bearer TOKEN")
        response.wantsToken = true
        return response
    }()

    /// Compared by digest, so that how long it takes tells nothing of the token.
    private func holdsToken(_ request: ControlRequest) -> Bool {
        guard let token, let authorization = request.authorization else { return false }
        let parts = authorization.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return false }
        let shown = parts[1].utf8.drop { $0 == UInt8(ascii: " ") }
        return zip(SHA256Digest.of(Array(shown)).bytes, token.bytes).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private func isOwn(_ host: String) -> Bool {
        guard case .success(let authority) = Authority.parse(host, defaultPort: 80) else { return false }
        return authority.isIPAddress || authority.host == "localhost" || hosts.contains(authority.host)
    }
}
