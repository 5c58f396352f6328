import PinproxyHTTPWire
import PinproxyRecords

/// Answers questions about incidents, for the owner of the proxy alone: they say who connects where. On the main loop.
struct IncidentDesk {
    enum Resource: Equatable {
        case list
        case show(String)
        case acknowledge(String)

        /// - Parameter path: after `incidents`.
        init?(_ path: ArraySlice<String>) {
            switch (path.count, path.first, path.last) {
            case (0, _, _): self = .list
            case (1, let id?, _): self = .show(id)
            case (2, let id?, "ack"?): self = .acknowledge(id)
            default: return nil
            }
        }
    }

    let incidents: () -> IncidentHistory
    let matched: () -> MatchedChains
    /// Closes an incident and stores that; `whom` in words.
    let acknowledge: (_ id: String, _ whom: String) -> Void

    func answer(_ resource: Resource, _ request: ControlRequest) -> ControlResponse {
        do throws(IncidentQuestion) {
            switch resource {
            case .list: return ControlResponse(IncidentList(incidents()))
            case .show(let id): return ControlResponse(IncidentRecord(try incidents().find(id), matched()))
            case .acknowledge(let id):
                let incident = try incidents().find(id)
                if incident.isOpen { acknowledge(incident.id, "\(request.door)") }
                return ControlResponse(IncidentRecord(incidents().incidents[incident.id] ?? incident, matched()))
            }
        } catch {
            let status = if case .none = error { 404 } else { 400 }
            return .problem(status, "\(error)")
        }
    }
}
