internal import Configuration
internal import Security
internal import Serialization
internal import Session

/// What a response must be by the rules in force.
struct ExpectedResponse {
    private let rules: ResponseRules
    private let judge: ResponseJudge
    /// Bytes: `limits.inspected_body`.
    private let inspectedBody: Int

    /// Nil if the rules ask for nothing.
    init?(_ rules: ExchangeRules, inspectedBody: Int) {
        guard let judge = rules.judge else { return nil }
        self.rules = rules.response
        self.judge = judge
        self.inspectedBody = inspectedBody
    }

    private var readsBody: Bool { !rules.serializers.contains(.http) || rules.removeNullValues && rules.serializers.first != .http }

    // MARK: For people

    var lines: [String] {
        var lines = ["", "What the response must be:"]
        lines.append("  status        \(judge.statuses?.map(\.description).joined(separator: ", ") ?? "any")")
        let types = judge.contentTypes?.map(\.description).joined(separator: ", ")
        lines.append("  content type  \(types.map { "\($0), if there is a body" } ?? "any")")
        lines.append("  body          \(body)")
        if rules.removeNullValues { lines.append("  rewritten     null values are removed from JSON") }
        let failure =
            judge.isEnforced ? "a client is told 502" : "it is passed on, and serializer.report is logged (enforcement: report)"
        lines.append("  if it is not  \(failure)")
        return lines
    }

    private var body: String {
        var parts: [String] = []
        if readsBody {
            parts.append(rules.serializers.map(\.format).joined(separator: " or "))
            let beyond = rules.oversize == .refuse ? "refused" : "passed unjudged"
            parts.append("held back until it is judged; beyond \(Count(inspectedBody, "byte")) it is \(beyond)")
        } else {
            parts.append("any")
        }
        if rules.maxBody != nil { parts.append("at most \(rules.text(of: .maxBody))") }
        return parts.joined(separator: ", ")
    }

    // MARK: For programs

    struct Report: Encodable {
        /// Left out: any.
        let status: [String]?
        let contentTypes: [String]?
        let serializers: [String]
        let removeNullValues: Bool
        let maxBody: Int?
        let oversize: String
        let enforcement: String
    }

    var report: Report {
        Report(
            status: judge.statuses?.map(\.description), contentTypes: judge.contentTypes?.map(\.description),
            serializers: rules.serializers.map(\.rawValue), removeNullValues: rules.removeNullValues, maxBody: rules.maxBody,
            oversize: rules.oversize.rawValue, enforcement: rules.enforcement.rawValue)
    }
}
