/// Why an ID names no incident.
package enum IncidentQuestion: Error, Sendable, Equatable, CustomStringConvertible {
    case malformed
    case none(String)
    case several(String, Int)

    package var description: String {
        switch self {
        case .malformed:
            "an incident's ID is 20 digits of 0-9 and a-f, or its first ones, \(IncidentHistory.shortestID) at least"
        case .none(let text): "there is no incident \(text); pinproxy incidents lists them"
        case .several(let text, let count): "\(count) incidents begin with \(text): write more of the ID"
        }
    }
}
