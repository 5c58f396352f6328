package import PinproxyTLS

/// The entries that `enforce_after` has enforced, kept over restarts.
///
/// ```json
/// {"entries": {"api.example.com": {"since": 1893456000, "pinning": "public-key", "position": "any",
///   "pins": ["sha256/…"]}}}
/// ```
package struct EnforcedEntries: Codable, Sendable, Equatable {
    /// What an enforced entry demanded.
    package struct Record: Codable, Sendable, Equatable {
        package var since: UnixTime
        package var pinning: String
        package var position: String
        package var pins: [String]
    }

    package static let fileName = "enforced.json"
    /// No other entries are counted.
    package static let maximumEntries = PinHistory.maximumEntries

    package private(set) var entries: [String: Record] = [:]

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        entries = try values.decode([String: Record].self, forKey: .entries)
        guard let name = entries.first(where: { !HistoryBounds.admit(dates: $0.value.since) })?.key else { return }
        throw DecodingError.dataCorruptedError(
            forKey: .entries, in: values, debugDescription: "the date of \(name) is out of bounds")
    }

    /// Adds an entry; false if it is full.
    package mutating func add(_ entry: String, _ policy: SecurityPolicy, at time: UnixTime) -> Bool {
        guard entries[entry] != nil || entries.count < Self.maximumEntries else { return false }
        entries[entry] = Record(
            since: time, pinning: policy.mode.rawValue, position: policy.position.rawValue,
            pins: policy.pins.pins.map(\.description).sorted())
        return true
    }

    /// Since when an entry is enforced; nil: it isn't. A pin that was added only loosens. Without a former pin, or with
    /// another position, nothing is known of the servers.
    package func since(_ entry: String, _ policy: SecurityPolicy) -> UnixTime? {
        guard case .after? = policy.rollout, let record = entries[entry], record.pinning == policy.mode.rawValue,
            record.position == policy.position.rawValue,
            Set(record.pins).isSubset(of: policy.pins.pins.map(\.description))
        else { return nil }
        return record.since
    }

    /// Forgets the entries that are no longer enforced by what is kept here, and returns their names.
    /// - Parameter policy: of an entry; nil for no such entry.
    package mutating func settle(_ policy: (String) -> SecurityPolicy?) -> [String] {
        let over = entries.keys.filter { name in policy(name).flatMap { since(name, $0) } == nil }
        for name in over { entries[name] = nil }
        return over
    }
}
