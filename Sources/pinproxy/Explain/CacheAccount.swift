internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxySerialization
internal import PinproxySession
internal import PinproxyTLS

/// The cache's decision about a request, by the rules and a running proxy's stored responses.
struct CacheAccount {
    private let method: PinproxyHTTPWire.Method
    private let methodName: String
    private let ruling: CacheRuling
    /// Nil: unknown.
    private let user: UInt32?
    /// Whether options describe the client.
    private let isOfClient: Bool
    private let now: UnixTime
    /// Nil: the running proxy wasn't asked.
    private let live: StoredResponses?

    init(
        _ host: Rehearsal.Host, _ request: RuleAccount.Request, in snapshot: Snapshot, client: Rehearsal.Client?,
        live: StoredResponses?, at now: UnixTime
    ) {
        self.now = now
        method = PinproxyHTTPWire.Method.allCases.first { $0.text == request.method } ?? .other
        methodName = request.method
        ruling = CacheRuling(Self.url(host, request), method: request.method, in: snapshot)
        user = client?.user
        isOfClient = client != nil
        self.live = live
    }

    static func url(_ host: Rehearsal.Host, _ request: RuleAccount.Request) -> RequestURL {
        RequestURL(isSecure: true, authority: host.authority, target: Array(request.path.utf8))
    }

    private var terms: (cache: CacheTerms, rules: ExchangeRules)? {
        guard case .stores(let terms, let rules) = ruling.outcome else { return nil }
        return (terms, rules)
    }

    /// Why neither a stored response is served nor the host's stored; nil: both may be.
    private var refusal: String? {
        if let refusal = ruling.refusal { return refusal }
        guard let terms else { return nil }
        if !terms.cache.rules.isShared, isOfClient, user == nil {
            return "the client's user is unknown, and the store is private to each user (--client user=NAME)"
        }
        if terms.rules.edits.changes("Range") { return "a rule changes Range, so that a part isn't the client's" }
        return nil
    }

    private var mayBeStored: Bool { refusal == nil && method == .get }

    /// The decision, as text.
    private var verdict: String {
        if let refusal { return "neither stored nor served: \(refusal)" }
        let store = terms?.cache.rules.store.rawValue ?? ""
        let whose = terms?.cache.rules.isShared == true ? "shared by all users" : "private to each user"
        switch method {
        case .get: return "stored (\(store), \(whose)) if the response allows it, and served while it is fresh"
        case .head: return "answered from a stored response to GET (\(store), \(whose)); its own isn't stored"
        default:
            return method.isSafe
                ? "not stored: only GET is" : "not stored: only GET is; a success removes what is stored for the URL"
        }
    }

    /// Further remarks on the decision.
    private var remarks: [String] {
        guard refusal == nil, method == .get || method == .head, let terms else { return [] }
        var remarks: [String] = []
        if ruling.isReportOnly(at: now) {
            remarks.append("a response is stored only if a pin matched (enforcement: report)")
        }
        if terms.rules.sendsCredentials {
            remarks.append(
                "the proxy sends credentials with it: stored only if the response says public, must-revalidate or "
                    + "s-maxage")
        }
        if !terms.cache.rules.isShared, !isOfClient {
            remarks.append(
                "a user is one of this machine or of proxy.users; for other clients nothing is stored")
        }
        return remarks
    }

    /// Responses that the client may get; nil: the running proxy wasn't asked.
    private var responses: [StoredResponseReport]? {
        guard method == .get || method == .head else { return nil }
        return live?.responses.filter { !isOfClient || $0.owner == .everybody || $0.user == user }
    }

    // MARK: For people

    var lines: [String] {
        var lines = ["", "The cache:", "  \(verdict)"] + remarks.map { "  \($0)" }
        guard let responses, refusal == nil || !responses.isEmpty else {
            return lines.map { $0.printable(longest: 1000) }
        }
        if responses.isEmpty {
            lines.append(
                "  nothing is stored now" + (live?.objection.map { "; the last response wasn't: \($0)" } ?? ""))
        }
        return lines.map { $0.printable(longest: 1000) } + responses.flatMap(\.lines)
    }

    // MARK: For programs

    struct Report: Encodable {
        let method: String
        let store: String?
        let shared: Bool?
        /// The response may be stored.
        let stored: Bool
        /// Why the response may not be stored.
        let reason: String?
        let remarks: [String]
        /// Left out: the running proxy wasn't asked.
        let responses: [StoredResponseReport]?
    }

    var report: Report {
        Report(
            method: methodName, store: terms?.cache.rules.store.rawValue, shared: terms?.cache.rules.isShared,
            stored: mayBeStored, reason: mayBeStored ? nil : refusal ?? verdict, remarks: remarks, responses: responses)
    }
}

extension ExchangeRules {
    /// Whether the proxy adds credentials.
    fileprivate var sendsCredentials: Bool { edits.changes("Authorization") || session.credentials != nil }
}

extension ConfigurationOptions {
    /// Asks a running proxy for its stored responses for a URL.
    func storedResponses(for url: RequestURL) throws -> StoredResponses {
        try RunningProxy.require(try stateFiles()).ask(.get, CacheArgument.target(ofResponsesFor: url))
    }
}
