import PinproxyRecords

/// The entries with a separate series at a collector: those with mismatches, incidents or dead pins. Once there, an
/// entry stays: a series that came and went would look like a restart.
struct NamedEntries {
    static let limit = 100
    static let others = "(others)"

    private var names: Set<String> = []
    /// The collector has their series.
    private var told: Set<String> = []
    /// When it last accepted metrics: nanoseconds since 1970.
    private var toldAt: UInt64?
    /// Entries beyond the limit, which share `(others)` in these figures.
    private(set) var omitted: Set<String> = []

    mutating func begin() { omitted = [] }

    mutating func label(_ entry: String) -> String {
        if names.contains(entry) || entry == Self.others { return entry }
        guard names.count < Self.limit else {
            omitted.insert(entry)
            return Self.others
        }
        names.insert(entry)
        return entry
    }

    /// When the entry's counts were still 0, if its series begins only now. Prometheus' `increase` doesn't see the
    /// first count of a series that begins with it.
    func zero(_ label: String) -> UInt64? { told.contains(label) || label == Self.others ? nil : toldAt }

    /// - Parameter measured: the entries of those figures.
    mutating func took(_ measured: NamedEntries, at time: UInt64) {
        told.formUnion(measured.names)
        toldAt = time
    }
}

/// The figures for a collector: families of `/metrics`, with one sum for all unremarkable entries.
struct FleetMetrics {
    let report: MetricsReport

    func write(to metrics: inout OTLPMetrics, _ entries: inout NamedEntries) {
        entries.begin()
        let counters = report.measurement.counters
        report.build(&metrics)
        exchanges(counters, &metrics)
        MetricsReport.refusals(counters, &metrics)
        checks(counters, &metrics, &entries)
        let pins = PinMetrics(daemon: report.daemon)
        pins.incidents(to: &metrics) { entries.label($0) }
        pins.dead(to: &metrics) { entries.label($0) }
        PinMetrics.ends(to: &metrics)
        pins.ownEnds(to: &metrics)
        ConfigurationMetrics(daemon: report.daemon).write(to: &metrics)
        TelemetryMetrics(status: report.daemon.telemetry).write(to: &metrics)
        metrics.family(
            "pinproxy_telemetry_entries_omitted", .gauge,
            "Entries with mismatches, incidents or dead pins beyond the \(NamedEntries.limit) that are named.",
            entries.omitted.count)
    }

    private func exchanges(_ counters: WorkerCounters, _ metrics: inout OTLPMetrics) {
        MetricsReport.exchanges(to: &metrics)
        for kind in WorkerCounters.Kind.allCases {
            for outcome in WorkerCounters.Outcome.allCases {
                let sum = counters.entries.reduce(0) { $0 + $1.exchanges(kind, outcome) }
                metrics.sample([("protocol", kind.label), ("outcome", "\(outcome)")], sum)
            }
        }
    }

    /// Matches as one sum, mismatches by entry.
    private func checks(_ counters: WorkerCounters, _ metrics: inout OTLPMetrics, _ entries: inout NamedEntries) {
        var matched: UInt64 = 0
        var failed: [String: (missed: UInt64, reported: UInt64)] = [NamedEntries.others: (0, 0)]
        for slot in counters.entries.indices where slot > EntrySlots.none {
            let entry = counters.entries[slot]
            matched += entry.pinsMatched
            guard entry.pinsMissed + entry.pinsReported > 0 else { continue }
            let label = entries.label(report.name(slot))
            failed[label, default: (0, 0)].missed += entry.pinsMissed
            failed[label, default: (0, 0)].reported += entry.pinsReported
        }
        PinMetrics.checks(to: &metrics)
        metrics.sample([("entry", NamedEntries.others), ("result", "matched")], matched)
        for (label, counts) in failed.sorted(by: { $0.key < $1.key }) {
            for (result, count) in [("missed", counts.missed), ("reported", counts.reported)] {
                let labels = [("entry", label), ("result", result)]
                if let time = entries.zero(label) { metrics.sample(labels, 0, at: time) }
                metrics.sample(labels, count)
            }
        }
    }
}
