package import PinproxyConfiguration
package import PinproxySecurity
package import PinproxyTLS

/// Counts, records and reports the chains that workers see. Any thread; never blocks on files.
package final class PinWatch: Sendable {
    package let ledger: PinLedger
    package let chains: ChainRecorder
    package let incidents: IncidentLedger
    private let reporter: PinReporter

    package init(ledger: PinLedger, chains: ChainRecorder, incidents: IncidentLedger, reporter: PinReporter) {
        self.ledger = ledger
        self.chains = chains
        self.incidents = incidents
        self.reporter = reporter
    }

    /// Once for each connection to an origin.
    /// - Returns: the ID of the incident, if the origin was refused or reported.
    package func saw(
        _ verdict: Verdict, of host: String, port: UInt16, entry: HostEntry?, _ circumstances: Circumstances,
        at time: UnixTime
    ) -> String? {
        chains.note(verdict, of: host, port: port, entry: entry, at: time)
        if let entry { ledger.count(verdict, of: entry, at: time) }
        guard let refusal = verdict.report ?? verdict.refusal else {
            incidents.accepted(verdict, of: host, port: port, at: time)
            return nil
        }
        if let entry {
            reporter.report(refusal, host: host, port: port, entry: entry, circumstances, at: time)
        }
        return incidents.note(
            Sighting(
                host: host, port: port, fault: refusal.isPinFailure ? .pin : .trust, cause: refusal.title,
                isReported: verdict.isAccepted, entry: entry, pins: refusal.configuredPins,
                presented: refusal.presented, verified: refusal.chain, evidence: verdict.evidence,
                circumstances: circumstances), at: time)
    }

    /// For an origin that didn't prove its key, or can't be judged for another reason.
    /// - Returns: the incident's ID.
    package func distrusted(
        _ presented: PresentedChain, because cause: String, of host: String, port: UInt16, entry: HostEntry?,
        _ circumstances: Circumstances, at time: UnixTime
    ) -> String {
        incidents.note(
            Sighting(
                host: host, port: port, fault: .unproven, cause: cause, isReported: false, entry: entry,
                pins: entry?.policy.pins.pins.map(\.description) ?? [], presented: presented, verified: nil,
                evidence: nil, circumstances: circumstances), at: time)
    }
}
