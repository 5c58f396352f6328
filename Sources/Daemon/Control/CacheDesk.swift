import PinproxyCaching
import PinproxyClients
import PinproxyConfiguration
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// Answers questions about the cache, for the owner of the proxy alone: it holds what each user got. On the main loop.
struct CacheDesk {
    enum Resource: String {
        case figures, responses, purge
    }

    /// The parts of the daemon that ``ControlResources`` uses.
    struct Daemon {
        let cache: ResponseCache
        /// Nil while the proxy starts.
        let configuration: () -> ActiveConfiguration?
        /// Called after each removal, with the number of responses and the requester.
        let purged: (PurgeScope, Int, ControlDoor) -> Void
    }

    let daemon: Daemon

    func answer(_ resource: Resource, _ request: ControlRequest) -> ControlResponse {
        do throws(CacheProblem) {
            return try answer(resource, to: request)
        } catch {
            return .problem(503, "\(error)")
        }
    }

    private func answer(_ resource: Resource, to request: ControlRequest) throws(CacheProblem) -> ControlResponse {
        guard let configuration = daemon.configuration() else { return .problem(503, "the proxy is just starting") }
        switch resource {
        case .figures: return ControlResponse(try figures(configuration.snapshot))
        case .responses:
            guard let url = request.url else { return Self.noURL }
            return ControlResponse(try responses(url, configuration))
        case .purge:
            guard let scope = PurgeScope(request) else {
                return .problem(400, "the parameters of /cache/purge are url=URL, host=HOST or all, percent-encoded")
            }
            let count = try daemon.cache.remove(scope)
            daemon.purged(scope, count, request.door)
            return ControlResponse(CachePurge(removed: count))
        }
    }

    private static let noURL = ControlResponse.problem(
        400, "the parameter of /cache/responses is url=URL, percent-encoded: http or https, without a fragment")

    private func figures(_ snapshot: Snapshot) throws(CacheProblem) -> CacheReport {
        let entries = snapshot.hosts.values.lazy.filter { $0.action == .intercept && $0.rules?.stores == true }.count
        let others = snapshot.defaultAction == .intercept && snapshot.defaultRules?.stores == true ? 1 : 0
        return CacheReport(
            requests: CacheCounts(daemon.cache.counts),
            stores: daemon.cache.figures.map {
                CacheReport.Store(
                    store: $0.store.rawValue, bytes: $0.bytes, limit: $0.limit, responses: $0.responses)
            },
            origins: try daemon.cache.origins(most: CacheReport.originLimit).map {
                CacheReport.Origin(origin: $0.origin, responses: $0.responses, bytes: $0.bytes)
            }, entries: entries + others)
    }

    /// By owner; the latest first.
    private static func isBefore(_ one: StoredResponseReport, _ other: StoredResponseReport) -> Bool {
        let (name, otherName) = (one.ownerName ?? "", other.ownerName ?? "")
        if name != otherName { return name < otherName }
        return (one.user ?? 0, other.age) < (other.user ?? 0, one.age)
    }

    private func responses(
        _ url: RequestURL, _ configuration: ActiveConfiguration
    ) throws(CacheProblem) -> StoredResponses {
        let ruling = CacheRuling(url, in: configuration.snapshot)
        let policies = ruling.policies(upstream: configuration.upstream)
        let now = WallClock.milliseconds() / 1000
        var stored: [StoredResponseReport] = []
        if let asked = OwnedRequest.plainGet(of: url) {
            stored = try daemon.cache.responses(for: url, asked: asked, under: policies).map {
                StoredResponseReport(
                    $0.owner, $0.store, $0.response, under: policies, for: CacheRequest(asked.view), at: now)
            }
        }
        var answer = StoredResponses(
            url: ShownText("\(url)").description, responses: stored.sorted(by: Self.isBefore),
            others: daemon.cache.neighbours(of: url))
        switch ruling.outcome {
        case .stores(let terms, _): (answer.store, answer.shared) = (terms.rules.store.rawValue, terms.rules.isShared)
        default: answer.refusal = ruling.refusal
        }
        if let last = daemon.cache.objections.latest(where: { $0.isOf(url) }) {
            (answer.objection, answer.objectionTime) = (last.objection.explanation, last.time)
        }
        return answer
    }
}

/// The answer of `POST /cache/purge`.
package struct CachePurge: Codable, Sendable, Equatable {
    /// The number of removed responses.
    package let removed: Int
}

extension ControlRequest {
    /// The URL that the query names; nil: none, or another's scheme.
    fileprivate var url: RequestURL? {
        guard let text = query["url"]?.percentDecoded, !text.contains("#"),
            let url = try? RequestURL(text)
        else { return nil }
        return RequestURL(isSecure: url.isSecure, authority: url.authority.canonical, target: url.target)
    }
}

extension PurgeScope {
    fileprivate init?(_ request: ControlRequest) {
        switch (request.query.count, request.query.keys.first) {
        case (1, "url"?):
            guard let url = request.url else { return nil }
            self = .url(url)
        case (1, "host"?):
            guard let text = request.query["host"]?.percentDecoded,
                case .success(let authority) = Authority.parse(text, defaultPort: 0)
            else { return nil }
            self = .host(authority.canonical.host, port: authority.port == 0 ? nil : authority.port)
        case (1, "all"?): self = .all
        default: return nil
        }
    }
}

extension OwnedRequest {
    /// As curl makes it.
    fileprivate static func plainGet(of url: RequestURL) -> OwnedRequest? {
        try? OwnedRequest(Array("GET ".utf8) + url.target + Array(" HTTP/1.1\r\nHost: \(url.origin.host)\r\n\r\n".utf8))
    }
}

extension StorageObjection {
    /// The reason, as a clause after "because".
    var explanation: String {
        switch self {
        case .reported: "its server has no pin that matches, and is only reported (enforcement: report)"
        case .endless: "it has no end, as server-sent events"
        case .incomplete: "it was interrupted, refused by a rule or too long, or there was no room for it"
        case .refused(let refusal): refusal.explanation
        }
    }
}

extension StorageRefusal {
    fileprivate var explanation: String {
        switch self {
        case .method: "the request was no GET"
        case .status: "a response with its status may not be stored, or isn't understood (must-understand)"
        case .requestNoStore: "the request said no-store"
        case .noStore: "the response said no-store"
        case .isPrivate: "the response said private, and the entry says shared: true"
        case .credentials:
            "the request had credentials (Authorization), and the response said neither public, must-revalidate nor "
                + "s-maxage"
        case .cookie: "the response set a cookie, and the entry says shared: true"
        case .vary: "the response varies by what no request repeats (Vary: *)"
        case .unspecified: "the response has no freshness information, and no heuristic applies"
        case .part: "it was a part without its place in the whole, or without a strong ETag"
        case .tooLarge: "it was larger than a twentieth of the store"
        }
    }
}
