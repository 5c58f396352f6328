import Session

extension BodyWorkFailure {
    /// The refusal of a response that couldn't be judged.
    func report(ofResponseFrom host: String) -> RefusalReport {
        let title = "Response from \(host) not judged"
        guard isOfBody else { return ProxyError.later(.origin(503, title, ProxyError.noRoom, details, host)) }
        var report = RefusalReport.origin(502, "\(title): \(cause)", "http_protocol_error", cause, host)
        report.body.append(
            "The body was decoded in a process that can do nothing else, and nothing of the response was passed on. "
                + "With `serializer: http` bodies are passed on unread.")
        return report
    }

    /// The refusal of a request with a body that couldn't be converted.
    func report(ofRequestFor host: String) -> RefusalReport {
        let title = "Request body for \(host) not converted"
        guard isOfBody else { return ProxyError.later(ProxyError.clientError(503, title, ProxyError.noRoom, details)) }
        return ProxyError.clientError(400, "\(title): \(cause)", "http_request_error", cause)
    }

    private var details: String { "\(cause); ask again in a moment" }
}
