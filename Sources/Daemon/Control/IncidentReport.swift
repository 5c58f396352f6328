package import PinproxyRecords

/// The answer of `GET /incidents`: the latest first, without their chains.
package struct IncidentList: Codable, Sendable, Equatable {
    package let incidents: [Incident]

    package init(_ history: IncidentHistory) { self.init(history.list) }

    package init(_ incidents: [Incident]) { self.incidents = incidents.map(\.withoutChain) }
}

/// The answer of `GET /incidents/ID`: all of one, and the chain to compare it with.
package struct IncidentRecord: Codable, Sendable, Equatable {
    package let incident: Incident
    /// The most similar chain of its host that matched a pin; nil: none is known.
    package let matched: MatchedChains.Chain?

    package init(_ incident: Incident, _ matched: MatchedChains) {
        self.incident = incident
        self.matched = matched.nearest(to: incident.certificates, of: incident.host, incident.port)
    }
}

/// An open incident, for the status page and `pinproxy status`.
package struct OpenIncident: Codable, Sendable, Equatable {
    static let limit = 100

    package let id: String
    package let host: String
    package let port: UInt16
    package let kind: Incident.Kind
    package let entry: String?
    package let cause: String
    package let first: Int64
    package let last: Int64
    package let refused: Int
    package let reported: Int
    /// At most three.
    package let addresses: [String]

    init(_ incident: Incident) {
        id = incident.id
        host = incident.host
        port = incident.port
        kind = incident.kind
        entry = incident.entry
        cause = incident.cause
        first = incident.first
        last = incident.last
        refused = incident.refused
        reported = incident.reported
        addresses = incident.addresses.suffix(3).map(\.address)
    }
}
