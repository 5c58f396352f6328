import PinproxySecurity
package import PinproxyTLS

/// The incidents of a machine, bounded by number and bytes. The least recently seen is evicted: first closed ones, then
/// those of hosts without pins. So failures of other hosts can't displace open incidents of pinned hosts.
package struct IncidentHistory: Codable, Sendable, Equatable {
    package static let maximumIncidents = 256
    /// Most bytes of their texts (``Incident/size``).
    package static let maximumBytes = 8 << 20
    /// Most incidents of a host with different chains; further chains share one.
    package static let chainsPerHost = 8
    /// Seconds after which an incident that wasn't seen again is forgotten.
    package static let lifetime: UnixTime = 90 * 86_400

    package private(set) var incidents: [String: Incident] = [:]
    /// The sum of all sizes.
    private var bytes = 0
    private(set) var openCount = 0

    private enum CodingKeys: String, CodingKey { case incidents }

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let read = try values.decode([String: Incident].self, forKey: .incidents)
        guard let broken = read.first(where: { $0.key != $0.value.id || !$0.value.isSound })?.key else {
            for incident in read.values { put(incident) }
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

    /// The result of a sighting.
    struct Outcome: Equatable, Sendable {
        enum News: Equatable, Sendable {
            case opened
            /// It had been acknowledged, and was seen at another address, or (a merged one) with another chain.
            case reopened
            /// The policy had accepted the chain meanwhile.
            case recurred
            /// It had only been reported, and is now refused; open or closed.
            case enforced
            /// The host's further chains share an incident.
            case merged
        }
        let id: String
        let news: News?
        /// Evicted incidents.
        let evicted: Int
    }

    /// Counts a connection.
    mutating func record(_ sighting: Sighting, at time: UnixTime) -> Outcome {
        let own = sighting.id
        var id = own
        var isMerged = false
        if incidents[id] == nil {
            let chains = incidents.values.count { $0.host == sighting.host && $0.port == sighting.port && !$0.merged }
            if chains >= Self.chainsPerHost {
                id = sighting.mergedID
                isMerged = true
            }
        }
        let known = incidents[id]
        var incident = known ?? sighting.incident(id, isMerged: isMerged, at: time)
        let isElsewhere = incident.saw(sighting, at: time)
        let isOther = isMerged && incident.variant != own
        if isMerged { incident.variant = own }
        let news: Outcome.News? =
            if let known {
                Self.news(of: sighting, known, isNew: isElsewhere || isOther)
            } else {
                isMerged ? .merged : .opened
            }
        if news != nil { incident.acknowledged = nil }
        put(incident)
        return Outcome(id: id, news: news, evicted: makeRoom(besides: id))
    }

    /// - Parameter isNew: its address, or its chain.
    private static func news(of sighting: Sighting, _ known: Incident, isNew: Bool) -> Outcome.News? {
        if known.isOnlyReported, !sighting.isReported { return .enforced }
        guard let acknowledged = known.acknowledged else { return nil }
        if acknowledged.isByPolicy { return .recurred }
        return isNew ? .reopened : nil
    }

    /// - Parameter id: the incident to keep.
    @discardableResult
    private mutating func makeRoom(besides id: String?) -> Int {
        var evicted = 0
        while incidents.count > Self.maximumIncidents || bytes > Self.maximumBytes {
            let others = incidents.values.lazy.filter { $0.id != id }
            guard let victim = others.min(by: { Self.worth($0) < Self.worth($1) }) else { break }
            remove(victim.id)
            evicted += 1
        }
        return evicted
    }

    /// The incident with the least worth is evicted first.
    private static func worth(_ incident: Incident) -> (Int, Int, UnixTime, String) {
        (incident.isOpen ? 1 : 0, incident.pins.isEmpty ? 0 : 1, incident.last, incident.id)
    }

    private mutating func put(_ incident: Incident) {
        remove(incident.id)
        incidents[incident.id] = incident
        bytes += incident.size
        if incident.isOpen { openCount += 1 }
    }

    private mutating func remove(_ id: String) {
        guard let incident = incidents.removeValue(forKey: id) else { return }
        bytes -= incident.size
        if incident.isOpen { openCount -= 1 }
    }

    /// - Parameter isByPolicy: no person: the policy accepts the chain now.
    /// - Returns: the incident, if it was open.
    package mutating func acknowledge(
        _ id: String, by whom: String, isByPolicy: Bool = false, at time: UnixTime
    ) -> Incident? {
        guard var incident = incidents[id], incident.isOpen else { return nil }
        incident.acknowledged = Incident.Acknowledgement(time: time, by: Incident.cut(whom), isByPolicy: isByPolicy)
        put(incident)
        return incident
    }

    /// Whether ``settle(at:)`` has anything to do.
    func isUnsettled(at time: UnixTime) -> Bool {
        incidents.values.contains {
            $0.latestDate > time + SteadyClock.tolerance || $0.last < time - Self.lifetime
        }
    }

    /// Forgets incidents not seen for long, and moves future dates to the present: a wrong clock wrote them, and the
    /// incidents would stay too long.
    /// - Parameter time: by a trusted clock (``SteadyClock``).
    /// - Returns: the forgotten incidents.
    mutating func settle(at time: UnixTime) -> [Incident] {
        for incident in incidents.values where incident.latestDate > time { put(incident.dated(before: time)) }
        let forgotten = incidents.values.filter { $0.last < time - Self.lifetime }
        for incident in forgotten { remove(incident.id) }
        return forgotten
    }

    /// The fewest characters of an ID that suffice, if no other begins with them.
    package static let shortestID = 4

    /// Finds an incident by its ID, or the ID's beginning.
    package func find(_ text: String) throws(IncidentQuestion) -> Incident {
        guard Incident.isID(text, atLeast: Self.shortestID) else { throw .malformed }
        let found = incidents.values.filter { $0.id.hasPrefix(text) }
        guard let incident = found.first else { throw .none(text) }
        guard found.count == 1 else { throw .several(text, found.count) }
        return incident
    }
}
