import PinproxyRecords
import PinproxySecurity
import PinproxyTLS

/// Pins that no longer match while others of their entry do, as `pinproxy lint` finds them.
struct DeadPins {
    let entry: String
    /// They have matched, but not for long.
    private(set) var matchedBefore = 0
    /// They never have: backups, mostly.
    private(set) var neverMatched = 0

    /// Nil: every pin of the entry matches, or none does.
    init?(of entry: String, _ record: PinHistory.EntryRecord, at now: Int64) {
        self.entry = entry
        guard record.removed == nil, record.isAlive(at: now) else { return nil }
        for pin in record.pins.values where pin.removed == nil && pin.isSilent(at: now) {
            if pin.last == nil { neverMatched += 1 } else { matchedBefore += 1 }
        }
        if matchedBefore + neverMatched == 0 { return nil }
    }
}

/// The families of pins and incidents, for `/metrics` and for a collector.
struct PinMetrics {
    let daemon: MetricsReport.Daemon

    static func checks(to metrics: inout some MetricsWriter) {
        metrics.family(
            "pinproxy_pin_checks", .counter,
            "New connections to hosts with pins: matched a pin, matched none and were refused, or were reported.")
    }

    /// - Parameter label: an entry's.
    func incidents(to metrics: inout some MetricsWriter, label: (String) -> String) {
        metrics.family(
            "pinproxy_incidents_open", .gauge,
            "Unacknowledged incidents, by the entry that decided: of pins, or of trust; reported: let "
                + "through by enforcement: report.")
        for kind in [Incident.Kind.pin, .trust] {
            for isOnlyReported in [false, true] {
                var counts = ["(defaults)": 0]
                for incident in daemon.openIncidents
                where incident.kind == kind && incident.isOnlyReported == isOnlyReported {
                    counts[incident.entry.map(label) ?? "(defaults)", default: 0] += 1
                }
                let labels = [("kind", kind.rawValue), ("result", isOnlyReported ? "reported" : "refused")]
                for (entry, count) in counts.sorted(by: { $0.key < $1.key }) {
                    metrics.sample([("entry", entry)] + labels, count)
                }
            }
        }
    }

    func dead(to metrics: inout some MetricsWriter, label: (String) -> String) {
        metrics.family(
            "pinproxy_dead_pins", .gauge,
            "Pins without a match in 30 days while others of their entry matched. never: since they were added; "
                + "before: they had matched.")
        var counts: [String: (before: Int, never: Int)] = [:]
        for pins in daemon.deadPins {
            let name = label(pins.entry)
            counts[name, default: (0, 0)].before += pins.matchedBefore
            counts[name, default: (0, 0)].never += pins.neverMatched
        }
        for (entry, count) in counts.sorted(by: { $0.key < $1.key }) {
            metrics.sample([("entry", entry), ("matched", "before")], count.before)
            metrics.sample([("entry", entry), ("matched", "never")], count.never)
        }
    }

    static func ends(to metrics: inout some MetricsWriter) {
        metrics.family(
            "pinproxy_expiry_timestamp_seconds", .gauge,
            "When something of the configuration ends that does so within 30 days, or has ended; at most "
                + "\(MetricsReport.expiringLimit). The proxy's own certificates are always there, without an entry.")
    }

    func ownEnds(to metrics: inout some MetricsWriter) {
        for own in daemon.ownCertificates {
            metrics.sample(
                [("what", own.subject.rawValue), ("name", own.certificate.subject)], own.certificate.notAfter)
        }
    }
}
