package import Configuration
package import Security
package import TLS

/// What workers tell of the chains that they meet: counted, recorded, and reported where
/// that is asked for.
/// Any thread; nobody waits for a file or a connection here.
package final class PinWatch: Sendable {
    package let ledger: PinLedger
    package let chains: ChainRecorder
    private let reporter: PinReporter

    package init(ledger: PinLedger, chains: ChainRecorder, reporter: PinReporter) {
        self.ledger = ledger
        self.chains = chains
        self.reporter = reporter
    }

    /// Takes note of a verdict, once for each connection to an origin.
    package func saw(_ verdict: Verdict, of host: String, port: UInt16, entry: HostEntry?, at time: UnixTime) {
        chains.note(verdict, of: host, port: port, entry: entry, at: time)
        guard let entry else { return }
        ledger.count(verdict, of: entry, at: time)
        if let refusal = verdict.report ?? verdict.refusal {
            reporter.report(refusal, host: host, port: port, entry: entry, at: time)
        }
    }
}
