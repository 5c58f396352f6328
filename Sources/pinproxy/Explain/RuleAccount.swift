internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySession

/// The session, request and response rules of a host, and which of them hold for a request.
struct RuleAccount {
    struct Request {
        let method: String
        /// Path and query, as the request has them.
        let path: String
    }

    /// Nil: nothing is written about the host, or nothing could come of it.
    private let layers: RuleLayers?
    private let action: HostAction
    private let request: Request?
    /// Nil where no request was asked about.
    private let outcome: RuleLayers.Outcome?
    /// Nil where none was asked about, or none of its rules holds.
    private let sent: SentRequest?
    private let expected: ExpectedResponse?
    private let exchange: ExpectedExchange?
    private let judgement: ResponseJudgement?
    /// Nil where no request was asked about.
    private let cache: CacheAccount?
    /// The proxy refuses the request, whatever the host presents.
    let refusal: Rehearsal.Answer?

    init(
        _ decision: Rehearsal.Decision, in snapshot: Snapshot, request: Request?, response: StoredResponse? = nil,
        cache: CacheAccount? = nil, bodies: any BodyExecutor
    ) {
        action = decision.action
        self.cache = cache
        let layers: RuleLayers? =
            switch action {
            case .deny: nil
            case .intercept, .tunnel, .verifyTunnel:
                decision.entry == nil ? snapshot.defaultRules : decision.entry?.rules
            }
        self.layers = layers
        self.request = request
        let outcome = request.flatMap { layers?.choose(path: $0.path, method: $0.method) }
        self.outcome = outcome
        guard action == .intercept else {
            (sent, expected, exchange, refusal) = (nil, nil, nil, nil)
            judgement = response.map {
                ResponseJudgement($0, unjudged: "the proxy sees no responses with action: \(decision.action.rawValue)")
            }
            return
        }
        if case .ambiguous? = outcome {
            (sent, expected, exchange) = (nil, nil, nil)
            refusal = Rehearsal.Answer(ambiguousPathFor: decision.host, entry: decision.entry)
            judgement = response.map { ResponseJudgement($0, unjudged: Self.noRequest) }
            return
        }
        let choice = if case .decided(let choice)? = outcome { choice } else { RuleLayers.Choice.none }
        let rules = layers?.rules(choice)
        let inspectedBody = snapshot.limits.inspectedBody
        expected = rules.flatMap { ExpectedResponse($0, inspectedBody: inspectedBody) }
        exchange = layers.flatMap { layers in
            ExpectedExchange(layers.rules(choice).session, keys: layers.keys(choice), path: request?.path)
        }
        sent = rules.flatMap { rules in
            request.flatMap { request in
                rules.changesRequests
                    ? SentRequest(request.method, request.path, by: rules, for: decision) : nil
            }
        }
        let refusal = sent?.refusal
        self.refusal = refusal
        judgement = response.map { response in
            refusal == nil
                ? ResponseJudgement(
                    response, by: rules, method: request?.method ?? "GET", path: request?.path ?? "", for: decision,
                    inspectedBody: inspectedBody,
                    bodies: bodies)
                : ResponseJudgement(response, unjudged: Self.noRequest)
        }
    }

    private static let noRequest = "the request would be refused"

    var isRefused: Bool { refusal != nil || judgement?.isRefused == true }

    private var seesRequests: Bool { action == .intercept }

    /// The keys in force: of the request, else of requests without a rule. None where the rules are ambiguous.
    private var keys: [LaidKey] {
        switch outcome {
        case .ambiguous? where seesRequests: []
        case .decided(let choice)? where seesRequests: layers?.keys(choice) ?? []
        default: (layers?.keys(.none) ?? []).filter { seesRequests || !$0.isOfExchanges }
        }
    }

    /// The rules for some requests, where none was asked about.
    private var pathRules: [PathRule] {
        guard let layers, seesRequests, request == nil else { return [] }
        return layers.entry.rules + layers.defaults.rules
    }

    // MARK: For people

    /// The request and its deciding rule; nil without a request.
    var decidingLine: String? {
        guard let request else { return nil }
        return "\(request.method) \(request.path.printable): \(deciding)"
    }

    private var deciding: String {
        guard seesRequests else { return "the proxy doesn't see it with action: \(action.rawValue)" }
        switch outcome {
        case nil: return "the host has no rules"
        case .decided(let choice)?: return names(choice)
        case .ambiguous(let one, let other)?:
            return "ambiguous: servers read the path in different ways, by one of which \(names(one)), "
                + "by another \(names(other)): refused"
        }
    }

    private func names(_ choice: RuleLayers.Choice) -> String {
        let chosen = layers?.chosen(choice).map {
            "\($0.layer.source) matches (\($0.place.short): \($0.requests.printable))"
        }
        guard let chosen, !chosen.isEmpty else { return "no rule matches" }
        return chosen.joined(separator: ", ")
    }

    func lines(_ palette: Palette) -> [String] {
        var lines: [String] = []
        if !keys.isEmpty {
            lines += ["", "Rules:"]
            lines += keys.map {
                "  \($0.name): \($0.value.printable(longest: 1000))  (\($0.source), \($0.place.short))"
            }
        }
        if !pathRules.isEmpty {
            lines += ["", "Rules for some requests, the first of each list that matches (see --path):"]
            lines += pathRules.map { "  \($0.requests.printable): \($0.layer.source), \($0.place.short)" }
        }
        return lines + (exchange?.lines ?? []) + (refusal == nil ? sent?.lines ?? [] : []) + (expected?.lines ?? [])
            + (cache?.lines ?? [])
    }

    /// Whether the request would be refused, and whether the response would be passed on.
    func verdictLines(_ palette: Palette) -> [String] {
        let refused = refusal.map { refusal in
            [
                "",
                "\(palette.paint("Refused", .failed)): a client gets \(refusal.status) \(refusal.title.printable)",
                "",
            ]
                + refusal.text.printableLines
        }
        return (refused ?? []) + (judgement?.lines(palette) ?? [])
    }

    // MARK: For programs

    struct Report: Encodable {
        struct Key: Encodable {
            let key: String
            let value: String
            let source: String
            let file: String
            let line: Int?
        }
        struct Rule: Encodable {
            let source: String
            let path: String?
            let methods: [String]
            let file: String
            let line: Int?

            init(_ rule: PathRule) {
                source = "\(rule.layer.source)"
                path = rule.path.map { "\($0)" }
                methods = rule.methods.map { "\($0)" }
                (file, line) = (rule.place.file, rule.place.line)
            }
        }
        struct Request: Encodable {
            let method: String
            let path: String
            let ambiguous: Bool
            let matching: [Rule]
            let sent: SentRequest.Report?
            let base: String?
            let refusal: RefusalReport?
        }

        let rules: [Key]?
        let pathRules: [Rule]?
        let request: Request?
        let expected: ExpectedResponse.Report?
        let response: ResponseJudgement.Report?
        let cache: CacheAccount.Report?
    }

    var report: Report {
        let keys = keys.map {
            Report.Key(
                key: $0.name, value: $0.value, source: "\($0.source)", file: $0.place.file, line: $0.place.line)
        }
        var (isAmbiguous, matching) = (false, [PathRule]())
        switch outcome {
        case .ambiguous?: isAmbiguous = seesRequests
        case .decided(let choice)? where seesRequests: matching = layers?.chosen(choice) ?? []
        default: break
        }
        return Report(
            rules: keys.isEmpty ? nil : keys, pathRules: pathRules.isEmpty ? nil : pathRules.map(Report.Rule.init),
            request: request.map {
                Report.Request(
                    method: $0.method, path: $0.path, ambiguous: isAmbiguous, matching: matching.map(Report.Rule.init),
                    sent: refusal == nil ? sent?.report : nil, base: exchange?.base,
                    refusal: refusal.map(RefusalReport.init))
            }, expected: expected?.report, response: judgement?.report, cache: cache?.report)
    }
}

extension Place {
    /// `FILE:LINE`.
    fileprivate var short: String { line.map { "\(file):\($0)" } ?? file }
}
