import Configuration
import EventLoop
import HTTPWire
import Logging
import Records
import Security
import Session

/// Logs, counts and reports what the policy found on new upstream connections.
extension WorkerContext {
    func report(_ result: Result<UpstreamConnection, UpstreamFailure>, of route: Route) {
        counters.count(result, at: route.slot)
        switch result {
        case .success(let connection):
            if let verdict = connection.verdict { report(verdict, of: route) }
        case .failure(let failure): report(failure, of: route)
        }
    }

    /// A remembered probe was reported when it was made.
    func report(_ outcome: UpstreamProbe.Outcome, of route: Route) {
        switch outcome {
        case .found(let finding, isFresh: true): report(finding.verdict, of: route, check: .probe)
        case .failed(let failure): report(failure, of: route, check: .probe)
        case .found: break
        }
    }

    private func report(_ failure: UpstreamFailure, of route: Route, check: TunnelVerdict.Check? = nil) {
        if case .refused(let verdict) = failure { report(verdict, of: route, check: check) }
        if let error = failure.unjudgedCertificates { reportDistrust("\(error)", of: route, check: check) }
    }

    /// - Parameter check: of a tunnel; nil where the proxy speaks TLS itself.
    func report(_ verdict: Verdict, of route: Route, check: TunnelVerdict.Check? = nil) {
        note(verdict, of: route)
        if let refusal = verdict.refusal {
            return warn(refusal.isPinFailure ? "pin.mismatch" : "trust.failure", refusal, route, check)
        }
        if let refusal = verdict.report {
            recent.note(
                refusal, host: route.authority.host, port: route.authority.port, entry: route.entry?.pattern,
                at: WallClock.milliseconds())
            warn("pin.report", refusal, route, check)
        }
        if let pin = verdict.matchedPin {
            log(
                .debug, "pin.match",
                fields(route, check, ["pin": "\(pin.origin)", "depth": .stringConvertible(verdict.matchedDepth ?? 0)]))
        }
    }

    private func note(_ verdict: Verdict, of route: Route) {
        counters.count(verdict, at: route.slot)
        // Test hosts have no history.
        guard TestHost(route.authority.host) == nil else { return }
        shared.pins.saw(
            verdict, of: route.authority.host, port: route.authority.port, entry: route.entry, at: unixTime())
    }

    /// For an origin that the policy can't judge.
    func reportDistrust(_ cause: String, of route: Route, check: TunnelVerdict.Check?) {
        log(.warning, "trust.failure", fields(route, check, ["cause": "\(cause)"]))
    }

    /// For a client that is shown a page instead of a failed connection.
    func reportPage(_ error: ProxyError, of route: Route, client: Endpoint) {
        let effect =
            "the client's TLS is finished with a certificate of the local authority, to show a page with the reason"
        log(
            .warning, "refusal.page",
            fields(route, nil, ["cause": "\(error.cause)", "client": "\(client)", "effect": "\(effect)"]))
    }

    private func warn(_ event: Logger.Message, _ refusal: Refusal, _ route: Route, _ check: TunnelVerdict.Check?) {
        log(.warning, event, fields(route, check, ["cause": "\(refusal.title)", "details": "\(refusal.details)"]))
    }

    private func fields(_ route: Route, _ check: TunnelVerdict.Check?, _ more: Logger.Metadata) -> Logger.Metadata {
        var fields = more
        if let check { fields["verification"] = "\(check.rawValue)" }
        fields["host"] = "\(route.authority.host)"
        fields["port"] = .stringConvertible(route.authority.port)
        if let entry = route.entry { fields["entry"] = "\(entry.pattern)" }
        return fields
    }
}
