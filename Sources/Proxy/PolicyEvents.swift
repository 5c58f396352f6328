import Configuration
import HTTPWire
import Logging
import Security
import Session

/// What the policy found on new upstream connections, as events of the log, counts and reports.
/// Connections that are used again carry a verdict that was reported when it was made.
extension Worker {
    func report(_ result: Result<UpstreamConnection, UpstreamFailure>, of route: Route) {
        switch result {
        case .success(let connection):
            guard let verdict = connection.verdict else { return }
            note(verdict, of: route)
            if let refusal = verdict.report { warn("pin.report", refusal, route) }
            if let pin = verdict.matchedPin {
                context.logger.debug(
                    "pin.match",
                    metadata: fields(route, ["pin": "\(pin.origin)", "depth": "\(verdict.matchedDepth ?? 0)"]))
            }
        case .failure(.refused(let verdict)):
            note(verdict, of: route)
            guard let refusal = verdict.refusal else { return }
            warn(refusal.isPinFailure ? "pin.mismatch" : "trust.failure", refusal, route)
        case .failure: break
        }
    }

    /// Tells those who keep count.
    private func note(_ verdict: Verdict, of route: Route) {
        context.pins.saw(
            verdict, of: route.authority.host, port: route.authority.port, entry: route.entry, at: unixTime())
    }

    private func warn(_ event: Logger.Message, _ refusal: Refusal, _ route: Route) {
        context.logger.warning(
            event, metadata: fields(route, ["cause": "\(refusal.title)", "details": "\(refusal.details)"]))
    }

    private func fields(_ route: Route, _ more: Logger.Metadata) -> Logger.Metadata {
        var fields = more
        fields["host"] = "\(route.authority.host)"
        fields["port"] = "\(route.authority.port)"
        if let entry = route.entry { fields["entry"] = "\(entry.pattern)" }
        return fields
    }
}
