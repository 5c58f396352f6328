import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession

extension ResponseSerializationError {
    /// The refusal of a response by the rules.
    /// - Parameters:
    ///   - source: the rule that decided, and where it is written.
    ///   - explanation: the command that shows the rules in force for the request.
    ///   - isEnforced: false: the response is passed on all the same, or would be.
    func report(
        of host: String, by source: String?, _ policy: PolicySource?, explainedBy explanation: ExplainCommandLine,
        isEnforced: Bool = true
    ) -> RefusalReport {
        let title = description(host: host)
        var report = RefusalReport.origin(502, title, proxyStatusError, title, host)
        let wanted = "Expected: \(expected)\nReceived: \(received)"
        let writer = source ?? policy.map { "\($0.pattern), \($0.location)" } ?? "the defaults of the pin file"
        report.body = [
            title + ".", ([wanted] + underlying.map { "Also: \($0)" }).joined(separator: "\n"),
            "Rule: \(writer)",
            (isEnforced
                ? "Nothing of the response was passed on. If it is right as it is, change the rule; enforcement: "
                    + "report logs such responses and passes them on."
                : """
                The response is passed on, since the rule's enforcement is report. If it is right as it is, change \
                the rule.
                """)
                + " `\(explanation)` shows the rules in force.",
        ]
        report.mismatch = RefusalReport.Mismatch(self, rule: writer)
        return report
    }

    /// RFC 9209 section 2.3.
    private var proxyStatusError: String {
        switch reason {
        case .unacceptableStatus, .unacceptableContentType, .malformedBody: "http_protocol_error"
        case .undecodable: "http_response_content_coding"
        case .tooLong, .tooLongToJudge: "http_response_body_size"
        }
    }
}

extension RefusalReport {
    /// A response that its rules refuse, for programs: codes of NSURLErrorDomain, nested as in AFNetworking.
    struct Mismatch: Encodable {
        let code: Int
        let expected: String
        let received: String
        let line: Int?
        let column: Int?
        let rule: String?
        let underlying: [Mismatch]?

        init(_ error: ResponseSerializationError, rule: String?) {
            code = error.code.rawValue
            expected = error.expected
            received = error.received
            line = error.place?.line
            column = error.place?.column
            self.rule = rule
            underlying = error.underlying.isEmpty ? nil : error.underlying.map { Mismatch($0, rule: nil) }
        }
    }
}

extension RequestSerializationError {
    /// The refusal of a request that the rules can't rewrite.
    /// - Parameters:
    ///   - rule: the rule that asks for it, and where it is written.
    ///   - isClients: the client's body is at fault, not what the rules write or the files that they name.
    func report(of host: String, by rule: String, isClients: Bool) -> RefusalReport {
        let title = "Request for \(host) not sent"
        let isTooLong = if case .tooLong = reason { true } else { false }
        return RefusalReport(
            status: isClients ? (isTooLong ? 413 : 400) : 500, reasonPhrase: "\(title): \(self)",
            proxyStatusError: isClients ? "http_request_error" : "proxy_configuration_error", details: "\(self)",
            title: title,
            body: ["\(self).", "Rule: \(rule)"], host: host)
    }
}

extension RedirectDefect {
    func report(of host: String, _ source: PolicySource?) -> RefusalReport {
        var report = RefusalReport.origin(
            status, "Redirect of \(host) not followed", proxyStatusError, description, host)
        if let source { report.body.append("The rules for \(source.pattern) are in \(source.location).") }
        return report
    }

    private var proxyStatusError: String {
        switch self {
        case .location, .severalLocations, .insecure: "http_protocol_error"
        case .refused, .tooMany, .bodyNotKept, .unusable: "proxy_internal_response"
        case .denied: "http_request_denied"
        }
    }

    /// The policy refuses a target with the same status as a direct request for it.
    private var status: Int { if case .denied = self { 403 } else { 502 } }
}

extension BodyWorkFailure {
    /// The refusal of a response that couldn't be judged.
    func report(ofResponseFrom host: String) -> RefusalReport {
        let title = "Response from \(host) not judged"
        guard isOfBody else { return .later(title, details, host) }
        var report = RefusalReport.origin(502, "\(title): \(cause)", "http_protocol_error", cause, host)
        report.body.append(
            "The body was decoded in a process that can do nothing else, and nothing of the response was passed on. "
                + "With `serializer: http` bodies are passed on unread.")
        return report
    }

    /// The refusal of a request with a body that couldn't be converted.
    func report(ofRequestFor host: String) -> RefusalReport {
        let title = "Request body for \(host) not converted"
        guard isOfBody else { return .later(title, details) }
        return .client(400, "\(title): \(cause)", cause)
    }

    private var details: String { "\(cause); ask again in a moment" }
}
