import Configuration
package import EventLoop
package import Logging
import Security
import Synchronization
import TLS

/// Takes what workers have to report, and hands the little of it that is to be sent to the main loop.
/// A worker waits for nothing here.
package final class PinReporter: Sendable {
    private let limiter = Mutex(ReportLimiter())
    private let delivery: LoopBound<ReportDelivery>
    private let handle: EventLoop.Handle
    private let logger: Logger

    package init(_ delivery: ReportDelivery, on loop: EventLoop, logger: Logger) {
        self.delivery = LoopBound(delivery, on: loop)
        handle = loop.handle
        self.logger = logger
    }

    /// Reports a pin failure, enforced or not, to the entry's `report_uri`, if it has one. Any thread.
    func report(_ refusal: Refusal, host: String, port: UInt16, entry: HostEntry, at time: UnixTime) {
        guard let destination = entry.reportURI, refusal.isPinFailure else { return }
        let fingerprint = SHA256Digest.of(
            Array("\(entry.pattern)\n\(host)\n\(port)\n\(destination.host):\(destination.port)\(destination.target)\n".utf8)
                + refusal.presented.certificates.flatMap(\.sha256.bytes))
        switch limiter.withLock({ $0.decide(fingerprint, at: .now()) }) {
        case .repeat: return
        case .drop(let isNews):
            guard isNews else { return }
            logger.warning(
                "pin.report.dropped",
                metadata: [
                    "cause": "more than \(ReportLimiter.perMinute) reports in a minute",
                    "effect": "no more are sent in this minute; their number follows",
                ])
            handle.post { [self] loop in
                delivery.value(on: loop).tellDropped(after: ReportLimiter.minuteNanoseconds) { [self] in sayDropped() }
            }
        case .send:
            guard let report = PinReport(refusal, host: host, port: port, entry: entry, at: time) else { return }
            let letter = ReportDelivery.Letter(body: report.json, destination: destination, host: host)
            let delivery = delivery
            handle.post { loop in delivery.value(on: loop).deliver(letter) }
        }
    }

    /// The limit's last word: how many it was.
    private func sayDropped() {
        guard let dropped = limiter.withLock({ $0.takeDropped() }) else { return }
        logger.warning(
            "pin.report.dropped",
            metadata: [
                "cause": "more than \(ReportLimiter.perMinute) reports in a minute",
                "dropped": .stringConvertible(dropped),
            ])
    }
}
