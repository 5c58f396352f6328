import HTTPWire
import Session

extension RedirectDefect {
    /// What a client is told whose redirect is neither followed nor passed on.
    func report(of host: String, _ source: PolicySource?) -> RefusalReport {
        var report = RefusalReport.origin(status, "Redirect of \(host) not followed", proxyStatusError, description, host)
        if let source { report.body.append("The rules for \(source.pattern) are in \(source.location).") }
        return report
    }

    /// RFC 9209's name of it.
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
