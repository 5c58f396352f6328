import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// The refusal after a failed connection to an origin.
extension UpstreamFailure {
    /// - Parameter source: the host's entry; nil: the defaults.
    func report(for authority: Authority, by source: PolicySource? = nil) -> RefusalReport {
        let host = authority.host
        switch self {
        case .unresolved(.timedOut(let name)):
            return RefusalReport.origin(
                504, "Looking up \(host) timed out", "dns_timeout", "no answer about \(name)", host)
        case .noDescriptors, .unresolved(.noDescriptors):
            return RefusalReport.origin(
                503, "Proxy out of file descriptors", "proxy_internal_error",
                "the proxy has no file descriptor left for a connection to \(authority): lower limits.clients, or "
                    + "raise its "
                    + "limit of open files (LimitNOFILE of the systemd unit, ulimit -n)", host)
        case .unresolved(let error):
            return RefusalReport.origin(502, "Cannot resolve \(host)", "dns_error", "\(error)", host)
        case .blocked(let address, let objection):
            return RefusalReport.origin(
                403, "\(host) is at a blocked address", "destination_ip_prohibited", "\(address) \(objection.reason)",
                host)
        case .unknownAddress:
            return RefusalReport.origin(
                403, "\(host) may be at a private address", "destination_ip_prohibited",
                "a redirect from an address of the internet leads to \(host), which the parent proxy looks up and this "
                    + "machine can't: "
                    + "it might be at a private address", host)
        case .itself(let address, let isParent):
            return RefusalReport.origin(
                508, isParent ? "The parent proxy is this proxy" : "\(authority) is this proxy", "proxy_loop_detected",
                "\(address) is where this proxy itself listens (proxy.listen, admin.listen)"
                    + (isParent ? "; upstream.parent leads there" : ""), host)
        case .unreachable(let error):
            return RefusalReport.origin(502, "Cannot connect to \(authority)", "connection_refused", "\(error)", host)
        case .timedOut(let step):
            let error = step == .nameLookup ? "dns_timeout" : "connection_timeout"
            return RefusalReport.origin(504, "\(host) timed out", error, "timed out \(step.rawValue)", host)
        case .parentRefused(let status):
            return RefusalReport.origin(
                502, "Parent proxy refused \(host)", "http_request_denied",
                "the parent proxy answered CONNECT \(authority) with \(status)", host)
        case .parentFailed(let cause):
            return RefusalReport.origin(
                502, "Parent proxy failed", "connection_terminated", "the parent proxy: \(cause)", host)
        case .tls(let error, let contact):
            let isOfCertificate = unjudgedCertificates != nil
            var report = RefusalReport.origin(
                502, isOfCertificate ? "Certificate of \(host) not accepted" : "TLS with \(host) failed",
                isOfCertificate ? "tls_certificate_error" : "tls_protocol_error",
                "TLS handshake with \(authority): \(error)", host)
            if isOfCertificate { report.contact = contact }
            return report
        case .clientCertificate(let refusal):
            return refusal.report(for: authority, by: source)
        case .refused(let verdict, let contact):
            guard let refusal = verdict.refusal else {
                return UpstreamFailure.local("no verdict").report(for: authority)
            }
            return RefusalReport(
                status: 502, reasonPhrase: refusal.title, proxyStatusError: "tls_certificate_error",
                details: Self.summary(of: refusal), title: refusal.title, body: [refusal.details], host: host,
                presentedPins: refusal.presentedPins, configuredPins: refusal.configuredPins,
                isPinFailure: refusal.isPinFailure, contact: contact)
        case .noNetwork(let reason):
            return .later(
                "No network to reach \(host)", "the network can't be reached: \(reason)", host,
                error: "destination_unavailable")
        case .cellularForbidden(let link):
            return .later(
                "\(host) is not used over WWAN",
                "the network is cellular (\(link)), and session.allow_wwan is false "
                    + "(\(source?.location ?? "defaults"))",
                host, error: "http_request_denied")
        case .otherProtocol(let offered):
            let names = offered.map(\.rawValue).joined(separator: ", ")
            return RefusalReport.origin(
                502, "\(host) does not speak \(names)", "tls_protocol_error",
                "the origin chose none of the protocols that it was offered (\(names)): session.http of "
                    + "\(source?.location ?? "defaults") "
                    + "allows no other", host)
        case .local(let cause):
            return RefusalReport.origin(502, "Internal error for \(host)", "proxy_internal_error", cause, host)
        }
    }

    /// The origin was reached, but its identity or TLS was refused.
    var isRefusalOfOrigin: Bool {
        switch self {
        case .refused, .tls, .clientCertificate: true
        case .unresolved, .noDescriptors, .blocked, .unknownAddress, .itself, .unreachable, .timedOut, .parentRefused,
            .parentFailed, .noNetwork,
            .cellularForbidden, .otherProtocol, .local:
            false
        }
    }

    /// One line with the presented pins: most clients show Proxy-Status of a refused CONNECT, but not its body.
    private static func summary(of refusal: Refusal) -> String {
        guard refusal.isPinFailure, !refusal.presentedPins.isEmpty else { return refusal.title }
        return "\(refusal.title); presented: \(refusal.presentedPins.joined(separator: ", "))"
    }
}

extension AddressGuard.Objection {
    fileprivate var reason: String {
        switch self {
        case .blocked(.kind(let kind)): "is \(kind.rawValue), which upstream.block_addresses names"
        case .blocked(.range(let range)): "is in \(range), which upstream.block_addresses names"
        case .insideFromOutside: "is not of the internet, and a redirect from an address of the internet led there"
        case .loopbackFromElsewhere:
            """
            is loopback of the proxy's machine, and the client is not on it, or in a private network \
            (upstream.allow_addresses lets it through)
            """
        }
    }
}

extension ClientCertificateRefusal {
    func report(for authority: Authority, by source: PolicySource?) -> RefusalReport {
        let title =
            request.shown == nil
            ? "\(authority.host) requires a client certificate" : "\(authority.host) refused the client certificate"
        var report = RefusalReport.origin(502, title, "tls_alert_received", details(authority, source), authority.host)
        report.body = [details(authority, source), advice(source)]
        return report
    }

    private func details(_ authority: Authority, _ source: PolicySource?) -> String {
        let ending = "it ended the connection with TLS alert \(alert) (\(alertName))"
        guard let shown = request.shown else {
            let place = source.map { "the entry for \($0.pattern) at \($0.location) has no client_certificate" }
            return
                """
                \(authority) requests a client certificate\(issuers), and \
                \(place ?? "no entry of the pin file names one"): \(ending)
                """
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
            return
                "Get a certificate from the host's operator and name it as client_certificate \(place), then: pinproxy "
                + "reload. If the program has a certificate of its own, write action: verify-tunnel instead."
        case .expired, .revoked:
            return "Get a new certificate, put its files in place of the old ones, then: pinproxy reload"
        case .notYetValid: return "Check this machine's clock; else wait until it is valid."
        case .expiredByServersClock:
            return "This machine's clock and the host's disagree: check this one, then ask the host's operator."
        case .unknownIssuer:
            let wanted = issuers.isEmpty ? "" : "The host requests one\(issuers). "
            return wanted
                + "Check that the right certificate is named as client_certificate, and that its file holds the "
                + "intermediate certificates too."
        case .notAccepted:
            return
                "Check that the right certificate is named as client_certificate; else ask the host's operator, whose "
                + "log says more."
        }
    }
}
