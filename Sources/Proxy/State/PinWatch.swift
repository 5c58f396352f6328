import Configuration
import Security
import TLS

/// What workers tell of the chains that they meet: counted, and reported where that is asked for.
/// Any thread; nobody waits for a file or a connection here.
final class PinWatch: Sendable {
    let ledger: PinLedger
    private let reporter: PinReporter

    init(ledger: PinLedger, reporter: PinReporter) {
        self.ledger = ledger
        self.reporter = reporter
    }

    /// Takes note of a verdict, once for each connection to an origin.
    func saw(_ verdict: Verdict, of host: String, port: UInt16, entry: HostEntry?, at time: UnixTime) {
        guard let entry else { return }
        ledger.count(verdict, of: entry, at: time)
        if let refusal = verdict.report ?? verdict.refusal {
            reporter.report(refusal, host: host, port: port, entry: entry, at: time)
        }
    }
}
