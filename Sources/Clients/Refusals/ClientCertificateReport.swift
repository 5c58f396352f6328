import HTTPWire
import Session
import TLS

/// What is said of an origin that asked for a client certificate and did not accept what it got. The fault is never
/// the client's, which takes no part in this handshake.
extension ClientCertificateRefusal {
    func report(for authority: Authority, by source: PolicySource?) -> RefusalReport {
        let title = request.shown == nil ? "\(authority.host) asks for a client certificate" : "\(authority.host) refused the client certificate"
        var report = RefusalReport.origin(502, title, "tls_alert_received", details(authority, source), authority.host)
        report.body = [details(authority, source), advice(source)]
        return report
    }

    private func details(_ authority: Authority, _ source: PolicySource?) -> String {
        let ending = "it ended the connection with TLS alert \(alert) (\(alertName))"
        guard let shown = request.shown else {
            let place = source.map { "the entry for \($0.pattern) at \($0.location) has no client_certificate" }
            return "\(authority) asks for a client certificate\(issuers), and \(place ?? "no entry of the pin file names one"): \(ending)"
        }
        let place = source.map { " (client_certificate of the entry for \($0.pattern) at \($0.location))" } ?? ""
        return "\(authority) was shown the client certificate \(shown.subject)\(place); \(fault(shown)): \(ending)"
    }

    private var issuers: String {
        guard !request.acceptableIssuers.isEmpty else { return "" }
        let listed = request.acceptableIssuers.prefix(3).joined(separator: " or ")
        return " issued by \(listed)\(request.acceptableIssuers.count > 3 ? " or others" : "")"
    }

    private func fault(_ shown: Certificate) -> String {
        switch reason {
        case .missing: "there is none"
        case .expired: "it expired \(CalendarDate(shown.notAfter))"
        case .notYetValid: "it is not valid before \(CalendarDate(shown.notBefore))"
        case .expiredByServersClock:
            "the host takes it as expired, although it is valid until \(CalendarDate(shown.notAfter))"
        case .unknownIssuer: "the host does not trust its issuer, \(shown.issuer)"
        case .revoked: "the host says that it was revoked"
        case .notAccepted: "the host did not accept it"
        }
    }

    private func advice(_ source: PolicySource?) -> String {
        let place = source.map { "in the entry at \($0.location)" } ?? "in an entry for the host in the pin file"
        switch reason {
        case .missing:
            return "Get a certificate from the host's operator and name it as client_certificate \(place), then: pinproxy "
                + "reload. If the program has a certificate of its own, write action: verify-tunnel instead."
        case .expired, .revoked:
            return "Get a new certificate, put its files in place of the old ones, then: pinproxy reload"
        case .notYetValid: return "Check this machine's clock; else wait until it is valid."
        case .expiredByServersClock:
            return "This machine's clock and the host's disagree: check this one, then ask the host's operator."
        case .unknownIssuer:
            let wanted = issuers.isEmpty ? "" : "The host asks for one\(issuers). "
            return wanted + "Check that the right certificate is named as client_certificate, and that its file holds the "
                + "intermediate certificates too."
        case .notAccepted:
            return "Check that the right certificate is named as client_certificate; else ask the host's operator, whose "
                + "log says more."
        }
    }
}
