import EventLoop
import HTTPWire
import Security
import Session

/// What is said of a connection to an origin that could not be made.
extension UpstreamFailure {
    /// - Parameter source: where it is written what holds for the host; nil: in the defaults.
    func report(for authority: Authority, by source: PolicySource? = nil) -> RefusalReport {
        let host = authority.host
        switch self {
        case .unresolved(.timedOut(let name)):
            return RefusalReport.origin(504, "Looking up \(host) timed out", "dns_timeout", "no answer about \(name)", host)
        case .noDescriptors, .unresolved(.noDescriptors):
            return RefusalReport.origin(
                503, "Proxy out of file descriptors", "proxy_internal_error",
                "the proxy has no file descriptor left for a connection to \(authority): lower limits.clients, or raise its "
                    + "limit of open files (LimitNOFILE of the systemd unit, ulimit -n)", host)
        case .unresolved(let error):
            return RefusalReport.origin(502, "Cannot resolve \(host)", "dns_error", "\(error)", host)
        case .blocked(let address, let objection):
            return RefusalReport.origin(
                403, "\(host) is at a blocked address", "destination_ip_prohibited", "\(address) \(objection.reason)", host)
        case .unknownAddress:
            return RefusalReport.origin(
                403, "\(host) may be at a private address", "destination_ip_prohibited",
                "a redirect from an address of the internet leads to \(host), which the parent proxy looks up and this machine can't: "
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
            return RefusalReport.origin(502, "Parent proxy failed", "connection_terminated", "the parent proxy: \(cause)", host)
        case .tls(let error):
            let isOfCertificate = unjudgedCertificates != nil
            return RefusalReport.origin(
                502, isOfCertificate ? "Certificate of \(host) not accepted" : "TLS with \(host) failed",
                isOfCertificate ? "tls_certificate_error" : "tls_protocol_error",
                "TLS handshake with \(authority): \(error)", host)
        case .clientCertificate(let refusal):
            return refusal.report(for: authority, by: source)
        case .refused(let verdict):
            guard let refusal = verdict.refusal else { return UpstreamFailure.local("no verdict").report(for: authority) }
            return RefusalReport(
                status: 502, reasonPhrase: refusal.title, proxyStatusError: "tls_certificate_error",
                details: Self.summary(of: refusal), title: refusal.title, body: [refusal.details], host: host,
                presentedPins: refusal.presentedPins, configuredPins: refusal.configuredPins, isPinFailure: refusal.isPinFailure)
        case .noNetwork(let reason):
            var report = RefusalReport.origin(
                503, "No network to reach \(host)", "destination_unavailable", "the network can't be reached: \(reason)", host)
            report.extraFields = [("Retry-After", "\(Self.retrySeconds)")]
            return report
        case .cellularForbidden(let link):
            var report = RefusalReport.origin(
                503, "\(host) is not used over WWAN", "http_request_denied",
                "the network is cellular (\(link)), and session.allow_wwan is false"
                    + " (\(source?.location ?? "defaults"))", host)
            report.extraFields = [("Retry-After", "\(Self.retrySeconds)")]
            return report
        case .local(let cause):
            return RefusalReport.origin(502, "Internal error for \(host)", "proxy_internal_error", cause, host)
        }
    }

    /// The origin was reached, and isn't the one that it should be, or doesn't speak TLS as it must.
    var isRefusalOfOrigin: Bool {
        switch self {
        case .refused, .tls, .clientCertificate: true
        case .unresolved, .noDescriptors, .blocked, .unknownAddress, .itself, .unreachable, .timedOut, .parentRefused, .parentFailed, .noNetwork,
            .cellularForbidden, .local: false
        }
    }

    /// What a client should wait for the network to return.
    private static let retrySeconds = 5

    /// One line with the pins that were seen: it goes into Proxy-Status, and most clients show a
    /// refused CONNECT's fields, but not its body.
    private static func summary(of refusal: Refusal) -> String {
        guard refusal.isPinFailure, !refusal.presentedPins.isEmpty else { return refusal.title }
        return "\(refusal.title); presented: \(refusal.presentedPins.joined(separator: ", "))"
    }
}

extension AddressGuard.Objection {
    /// What is said of the address, and where it is decided.
    fileprivate var reason: String {
        switch self {
        case .blocked(.kind(let kind)): "is \(kind.rawValue), which upstream.block_addresses names"
        case .blocked(.range(let range)): "is in \(range), which upstream.block_addresses names"
        case .insideFromOutside: "is not of the internet, and a redirect from an address of the internet led there"
        case .loopbackFromElsewhere:
            "is loopback of the proxy's machine, and the client is not on it, or in a network of its own (upstream.allow_addresses lets it through)"
        }
    }
}
