import HTTPWire
import Logging
import Security
import Session

/// What the policy found on new upstream connections, as events of the log. Connections that are used
/// again, and TLS sessions that are resumed, carry a verdict that was reported when it was made.
extension Worker {
    func report(_ result: Result<UpstreamConnection, UpstreamFailure>, of route: Route) {
        switch result {
        case .success(let connection):
            guard let verdict = connection.verdict else { return }
            if let refusal = verdict.report { warn("pin.report", refusal, route) }
            if let pin = verdict.matchedPin {
                context.logger.debug(
                    "pin.match",
                    metadata: fields(route, ["pin": "\(pin.origin)", "depth": "\(verdict.matchedDepth ?? 0)"]))
            }
        case .failure(.refused(let verdict)):
            guard let refusal = verdict.refusal else { return }
            warn(refusal.isPinFailure ? "pin.mismatch" : "trust.failure", refusal, route)
        case .failure: break
        }
    }

    private func warn(_ event: Logger.Message, _ refusal: Refusal, _ route: Route) {
        context.logger.warning(
            event, metadata: fields(route, ["cause": "\(refusal.title)", "details": "\(refusal.details)"]))
    }

    private func fields(_ route: Route, _ more: Logger.Metadata) -> Logger.Metadata {
        var fields = more
        fields["host"] = "\(route.authority.host)"
        fields["port"] = "\(route.authority.port)"
        if let entry = route.entry { fields["entry"] = "\(entry)" }
        return fields
    }
}
