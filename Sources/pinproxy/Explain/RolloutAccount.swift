internal import PinproxyConfiguration
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// When, where or after what an entry enforces its pins.
struct RolloutAccount {
    private let rollout: PinRollout
    /// Nil: nothing was counted, or it can't be read.
    private let record: PinHistory.EntryRecord?
    private let now: UnixTime

    /// Nil without an entry with a rollout.
    init?(_ entry: HostEntry?, in snapshot: Snapshot, at now: UnixTime) {
        guard let entry, let rollout = entry.policy.rollout else { return nil }
        self.rollout = rollout
        self.now = now
        let file = StateFile<PinHistory>(PinHistory.fileName, in: snapshot.stateDirectory)
        record = rollout.awaited == nil ? nil : (try? file.read()).flatMap { $0?.entries[entry.pattern] }
    }

    var text: String { rollout.text(at: now, counted: record) }

    struct Report: Encodable {
        /// As in the pin file.
        let key: String
        let value: String
        /// `reported` or `enforced`.
        let state: String
        let text: String
        let enforcedSince: String?
        /// Consecutive connections that matched a pin, with `enforce_after`.
        let matches: Int?
        let matchedDays: Int64?
        /// The place of this machine, with `stage`.
        let place: Int?
    }

    var report: Report {
        var (since, place): (String?, Int?)
        if case .after(_, let date?) = rollout { since = "\(CalendarDate(date))" }
        if case .stage(_, let own) = rollout { place = own }
        return Report(
            key: rollout.key, value: rollout.written,
            state: rollout.enforcement(at: now) == .enforce ? "enforced" : "reported", text: text,
            enforcedSince: since, matches: record?.matchesSinceMiss,
            matchedDays: record.map { ($0.matchedFor ?? 0) / 86_400 }, place: place)
    }
}
