import Serialization
import Session

extension ResponseSerializationError {
    /// What a client is told of a response that the rules refuse.
    /// - Parameters:
    ///   - source: the rule that decided, and where it is written.
    ///   - policy: the entry.
    func report(of host: String, by source: String?, _ policy: PolicySource?) -> RefusalReport {
        let title = description(host: host)
        var report = RefusalReport.origin(502, title, proxyStatusError, title, host)
        let wanted = "Expected: \(expected)\nReceived: \(received)"
        let writer = source ?? policy.map { "\($0.pattern), \($0.location)" } ?? "the defaults of the pin file"
        report.body = [
            title + ".", ([wanted] + underlying.map { "Also: \($0)" }).joined(separator: "\n"),
            "Rule: \(writer)",
            "Nothing of the response was passed on. If it is right as it is, change the rule; enforcement: report logs such "
                + "responses and passes them on. `pinproxy explain \(host) --path PATH` shows the rules in force.",
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
    /// A response that isn't what its rules want, for programs: the codes are those of NSURLErrorDomain, as
    /// AFNetworking uses them, and nested as there.
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
    /// What a client is told of a request that the rules can't write as they should.
    /// - Parameter isClients: the client's body is at fault, not what the rules write or the files that they name.
    func report(of host: String, entry: String?, isClients: Bool) -> RefusalReport {
        let title = "Request for \(host) not sent"
        let isTooLong = if case .tooLong = reason { true } else { false }
        return RefusalReport(
            status: isClients ? (isTooLong ? 413 : 400) : 500, reasonPhrase: "\(title): \(self)",
            proxyStatusError: isClients ? "http_request_error" : "proxy_configuration_error", details: "\(self)", title: title,
            body: ["\(self).", "The request rules of \(entry ?? "the defaults") ask for it."], host: host)
    }
}
