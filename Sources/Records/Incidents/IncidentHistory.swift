import Security
package import TLS

/// The incidents of a machine, bounded by number and bytes. The least recently seen makes room, first among hosts
/// without pins: failures of other hosts can't displace those of pinned ones.
package struct IncidentHistory: Codable, Sendable, Equatable {
    package static let maximumIncidents = 256
    /// Of their texts (``Incident/size``).
    package static let maximumBytes = 8 << 20
    /// Different chains of a host; further ones share an incident.
    package static let chainsPerHost = 8
    /// Seconds after which an incident that wasn't seen again is forgotten.
    package static let lifetime: UnixTime = 90 * 86_400

    package private(set) var incidents: [String: Incident] = [:]
    /// The sum of all sizes.
    private var bytes = 0

    private enum CodingKeys: String, CodingKey { case incidents }

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        incidents = try values.decode([String: Incident].self, forKey: .incidents)
        guard let broken = incidents.first(where: { $0.key != $0.value.id || !$0.value.isSound })?.key else {
            bytes = incidents.values.reduce(0) { $0 + $1.size }
            makeRoom(besides: nil)
            return
        }
        throw DecodingError.dataCorruptedError(
            forKey: .incidents, in: values,
            debugDescription: "incident \(broken) has a number out of bounds, or another ID in it")
    }

    /// The latest first.
    package var list: [Incident] { incidents.values.sorted { ($0.last, $0.id) > ($1.last, $1.id) } }

    package var open: [Incident] { list.filter(\.isOpen) }

    /// What a sighting led to.
    struct Outcome: Equatable, Sendable {
        enum News: Equatable, Sendable {
            case opened
            /// It had been acknowledged, and was seen at another address, or (a merged one) with another chain.
            case reopened
            /// From here on the host's further chains share an incident.
            case merged
        }
        let id: String
        let news: News?
        /// Incidents that made room.
        let evicted: Int
    }

    /// Counts a connection.
    mutating func record(_ sighting: Sighting, at time: UnixTime) -> Outcome {
        let place = sighting.place
        let own = Sighting.id(of: sighting.presented, at: place)
        var id = own
        var news: Outcome.News?
        var isMerged = false
        if incidents[id] == nil {
            let chains = incidents.values.count { $0.host == sighting.host && $0.port == sighting.port && !$0.merged }
            if chains >= Self.chainsPerHost {
                id = Sighting.mergedID(at: place)
                isMerged = true
            }
        }
        let known = incidents[id]
        var incident = known ?? sighting.incident(id, isMerged: isMerged, at: time)
        bytes -= known?.size ?? 0
        let isElsewhere = incident.saw(sighting, at: time)
        let isOther = isMerged && incident.variant != own
        if isMerged { incident.variant = own }
        if known == nil {
            news = isMerged ? .merged : .opened
        } else if !incident.isOpen, isElsewhere || isOther {
            incident.acknowledged = nil
            news = .reopened
        }
        bytes += incident.size
        incidents[id] = incident
        return Outcome(id: id, news: news, evicted: makeRoom(besides: id))
    }

    /// - Parameter id: the one that isn't removed.
    @discardableResult
    private mutating func makeRoom(besides id: String?) -> Int {
        var evicted = 0
        while incidents.count > Self.maximumIncidents || bytes > Self.maximumBytes {
            let others = incidents.values.filter { $0.id != id }
            let unpinned = others.filter(\.pins.isEmpty)
            let victims = unpinned.isEmpty ? others : unpinned
            guard let victim = victims.min(by: { ($0.last, $0.id) < ($1.last, $1.id) }) else { break }
            remove(victim)
            evicted += 1
        }
        return evicted
    }

    private mutating func remove(_ incident: Incident) {
        incidents[incident.id] = nil
        bytes -= incident.size
    }

    /// - Returns: the incident, if it was open.
    package mutating func acknowledge(_ id: String, by whom: String, at time: UnixTime) -> Incident? {
        guard var incident = incidents[id], incident.isOpen else { return nil }
        bytes -= incident.size
        incident.acknowledged = Incident.Acknowledgement(time: time, by: Incident.cut(whom))
        bytes += incident.size
        incidents[id] = incident
        return incident
    }

    /// Forgets what wasn't seen for long.
    mutating func forget(at time: UnixTime) {
        for incident in incidents.values where incident.last < time - Self.lifetime { remove(incident) }
    }

    /// Characters of an ID that are enough, if it is the only one that begins so.
    package static let shortestID = 4

    /// Finds an incident by its ID, or the ID's beginning.
    package func find(_ text: String) throws(IncidentQuestion) -> Incident {
        guard (Self.shortestID...20).contains(text.utf8.count), text.utf8.allSatisfy(Self.isDigit) else {
            throw .malformed
        }
        let found = incidents.values.filter { $0.id.hasPrefix(text) }
        guard let incident = found.first else { throw .none(text) }
        guard found.count == 1 else { throw .several(text, found.count) }
        return incident
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}
