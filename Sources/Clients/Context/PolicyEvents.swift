import Logging
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// Logs, counts and reports what the policy found on new upstream connections, and keeps incidents.
extension WorkerContext {
    /// The subject of a verdict.
    struct Judged {
        let route: Route
        let requester: Requester
        /// The check of a tunnel; nil where the proxy speaks TLS itself.
        var check: TunnelVerdict.Check?
    }

    func report(_ result: Result<UpstreamConnection, UpstreamFailure>, of route: Route, for requester: Requester) {
        counters.count(result, at: route.slot)
        let judged = Judged(route: route, requester: requester)
        switch result {
        case .success(let connection):
            if let verdict = connection.verdict { report(verdict, judged, connection.contact()) }
        case .failure(let failure): report(failure, judged)
        }
    }

    /// A remembered probe was reported when it was made.
    func report(_ outcome: UpstreamProbe.Outcome, of route: Route, for requester: Requester) {
        let judged = Judged(route: route, requester: requester, check: .probe)
        switch outcome {
        case .found(let finding, isFresh: true): report(finding.verdict, judged, nil)
        case .failed(let failure): report(failure, judged)
        case .found: break
        }
    }

    private func report(_ failure: UpstreamFailure, _ judged: Judged) {
        if case .refused(let verdict, let contact) = failure { report(verdict, judged, contact) }
        if let error = failure.unjudgedCertificates { reportDistrust("\(error)", judged, failure.contact) }
    }

    /// - Parameter contact: of the connection, asked for only where the origin is refused or reported.
    func report(_ verdict: Verdict, _ judged: Judged, _ contact: @autoclosure () -> OriginContact?) {
        let route = judged.route
        let finding = verdict.refusal ?? verdict.report
        let contact = finding == nil ? nil : contact()
        let incident = note(verdict, judged, contact)
        if let refusal = verdict.refusal {
            return warn(refusal.isPinFailure ? "pin.mismatch" : "trust.failure", refusal, judged, contact, incident)
        }
        if let refusal = verdict.report {
            recent.note(
                refusal, host: route.authority.host, port: route.authority.port, entry: route.entry?.pattern,
                connection: ConnectionAccount(contact, judged.requester).text, at: WallClock.milliseconds())
            warn("pin.report", refusal, judged, contact, incident)
        }
        if let pin = verdict.matchedPin {
            log(
                .debug, "pin.match",
                fields(judged, ["pin": "\(pin.origin)", "depth": .stringConvertible(verdict.matchedDepth ?? 0)]))
        }
    }

    /// - Returns: the incident's ID, if there is one.
    private func note(_ verdict: Verdict, _ judged: Judged, _ contact: OriginContact?) -> String? {
        let route = judged.route
        counters.count(verdict, at: route.slot)
        guard !route.isTrial else { return nil }
        return shared.pins.saw(
            verdict, of: route.authority.host, port: route.authority.port, entry: route.entry,
            Circumstances(contact, judged.requester, verification: judged.check?.rawValue), at: unixTime())
    }

    /// For an origin that the policy can't judge.
    /// - Parameter presented: its chain, if that is readable.
    func reportDistrust(
        _ cause: String, _ judged: Judged, _ contact: OriginContact?, presented: PresentedChain? = nil
    ) {
        let route = judged.route
        let circumstances = Circumstances(contact, judged.requester, verification: judged.check?.rawValue)
        let incident: String? = presented.flatMap { presented in
            guard !route.isTrial else { return nil }
            return shared.pins.distrusted(
                presented, because: cause, of: route.authority.host, port: route.authority.port, entry: route.entry,
                circumstances, at: unixTime())
        }
        log(.warning, "trust.failure", fields(judged, contact, incident, ["cause": "\(cause)"]))
    }

    /// For a client that is shown a page instead of a failed connection.
    func reportPage(_ error: ProxyError, of route: Route, for requester: Requester) {
        let effect =
            "the client's TLS is finished with a certificate of the local authority, to show a page with the reason"
        let judged = Judged(route: route, requester: requester)
        log(
            .warning, "refusal.page",
            fields(judged, nil, nil, ["cause": "\(error.cause)", "effect": "\(effect)"]))
    }

    private func warn(
        _ event: Logger.Message, _ refusal: Refusal, _ judged: Judged, _ contact: OriginContact?, _ incident: String?
    ) {
        log(
            .warning, event,
            fields(judged, contact, incident, ["cause": "\(refusal.title)", "details": "\(refusal.details)"]))
    }

    /// With the client and the origin's connection.
    private func fields(
        _ judged: Judged, _ contact: OriginContact?, _ incident: String?, _ more: Logger.Metadata
    ) -> Logger.Metadata {
        var fields = fields(judged, more)
        fields.merge(judged.requester.fields) { $1 }
        if let contact { fields.merge(contact.fields) { $1 } }
        if let incident { fields["incident"] = "\(incident)" }
        return fields
    }

    private func fields(_ judged: Judged, _ more: Logger.Metadata) -> Logger.Metadata {
        var fields = more
        let route = judged.route
        if let check = judged.check { fields["verification"] = "\(check.rawValue)" }
        fields["host"] = "\(route.authority.host)"
        fields["port"] = .stringConvertible(route.authority.port)
        if let entry = route.entry { fields["entry"] = "\(entry.pattern)" }
        if route.isTrial { fields["trial"] = .stringConvertible(true) }
        return fields
    }
}

extension UpstreamFailure {
    /// It is logged as a refusal, and kept as an incident where there is a chain.
    var isReported: Bool {
        if case .refused = self { return true }
        return unjudgedCertificates != nil
    }
}

extension Route {
    /// Its host is one that the proxy answers itself, for `pinproxy doctor`: it has no history, and no incidents. No
    /// entry can have the name, so nothing real is left out by it.
    var isTrial: Bool { slot == EntrySlots.uncounted }
}
