import FoundationEssentials
package import Logging
import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import Synchronization

/// Filters workers' pin failures, and sends reports on the main loop. No worker waits.
package final class PinReporter: Sendable {
    private let limiter = Mutex(ReportLimiter())
    private let delivery: LoopBound<ReportDelivery>
    private let logger: Logger

    package init(_ delivery: ReportDelivery, on loop: EventLoop, logger: Logger) {
        self.delivery = LoopBound(delivery, on: loop)
        self.logger = logger
    }

    /// Reports a pin failure, enforced or not, to the entry's `report_uri`. Any thread.
    func report(
        _ refusal: Refusal, host: String, port: UInt16, entry: HostEntry, _ circumstances: Circumstances,
        at time: UnixTime
    ) {
        guard let destination = entry.reportURI, refusal.isPinFailure else { return }
        let fingerprint = SHA256Digest.of(
            Array(
                "\(entry.pattern)\n\(host)\n\(port)\n\(destination.host):\(destination.port)\(destination.target)\n"
                    .utf8)
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
            delivery.post { [self] delivery in
                delivery.tellDropped(after: ReportLimiter.minuteNanoseconds) { [self] in sayDropped() }
            }
        case .send:
            guard let report = PinReport(refusal, host: host, port: port, entry: entry, circumstances, at: time) else {
                return
            }
            let letter = ReportDelivery.Letter(body: report.json, destination: destination, host: host)
            delivery.post { $0.deliver(letter) }
        }
    }

    /// Logs the number of dropped reports.
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

/// The report of RFC 7469 section 3, as HPKP collectors read it. Without `expires` it has no
/// `effective-expiration-date`, which must be a date. Pinned certificates and DNS records are `pin-cert-sha256` and
/// `pin-tlsa`, by the grammar of section 2.1.1: receivers may ignore unknown directives.
struct PinReport: Encodable {
    let dateTime: String
    let hostname: String
    let port: UInt16
    let effectiveExpirationDate: String?
    let includeSubdomains: Bool
    let notedHostname: String
    let servedCertificateChain: [String]
    let validatedCertificateChain: [String]
    let knownPins: [String]
    // The host's address, and the client. Not in RFC 7469: receivers ignore unknown members.
    let connection: ConnectionDetails
    let client: ClientDetails?
    let task: UInt64?

    /// Nil: not a failure of a chain without a pin.
    init?(
        _ refusal: Refusal, host: String, port: UInt16, entry: HostEntry, _ circumstances: Circumstances,
        at time: UnixTime
    ) {
        switch refusal.reason {
        case .pinMismatch, .pinnedAnchors: break
        default: return nil
        }
        dateTime = Self.date(time)
        hostname = host
        self.port = port
        effectiveExpirationDate = entry.policy.expiry.map { Self.date($0.date) }
        let pattern = try? HostPattern(entry.pattern)
        includeSubdomains = pattern.map { $0.scope != .exact } ?? false
        notedHostname = pattern?.name ?? entry.pattern
        servedCertificateChain = refusal.presented.certificates.map(\.pem)
        validatedCertificateChain = refusal.chain?.certificates.map(\.pem) ?? []
        knownPins = entry.policy.pins.pins.map(Self.directive)
        connection = ConnectionDetails(circumstances.contact)
        client = circumstances.requester?.traits.map { ClientDetails($0) }
        task = circumstances.requester?.task
    }

    var json: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .custom { HyphenedKey(stringValue: $0.last?.stringValue ?? "") }
        // Strings and numbers always encode.
        return (try? encoder.encode(self)).map { [UInt8]($0) } ?? []
    }

    private static func date(_ time: UnixTime) -> String {
        Date(timeIntervalSince1970: TimeInterval(time)).formatted(.iso8601)
    }

    private static func directive(_ pin: Pin) -> String {
        switch pin.kind {
        case .spki(let digest): "pin-sha256=\"\(digest.base64)\""
        case .certificate(let digest, _): "pin-cert-sha256=\"\(digest.base64)\""
        case .record(let record): "pin-tlsa=\"\(record)\""
        }
    }
}

/// `dateTime` as `date-time`, which is how RFC 7469 writes names.
private struct HyphenedKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) {
        self.stringValue = stringValue.reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : "\($1)" }
    }

    init?(intValue: Int) { nil }
}

/// Limits reports: each once an hour, and a bounded number a minute, however many clients fail.
struct ReportLimiter {
    enum Ruling: Equatable {
        case send
        case `repeat`
        /// Too many in this minute; `isNews`: the first of them.
        case drop(isNews: Bool)
    }

    static let minuteNanoseconds: UInt64 = 60_000_000_000

    static let repeatNanoseconds: UInt64 = 3600 * 1_000_000_000
    static let perMinute = 30
    static let remembered = 1024

    private var sent: [SHA256Digest: MonotonicTime] = [:]
    private var minuteBegan: MonotonicTime?
    private var countOfMinute = 0
    /// New reports of this minute that were not sent.
    private var dropped = 0

    mutating func decide(_ report: SHA256Digest, at now: MonotonicTime) -> Ruling {
        if let last = sent[report], now - last < Self.repeatNanoseconds { return .repeat }
        if minuteBegan.map({ now - $0 >= Self.minuteNanoseconds }) ?? true {
            minuteBegan = now
            countOfMinute = 0
        }
        countOfMinute += 1
        guard countOfMinute <= Self.perMinute else {
            dropped += 1
            return .drop(isNews: countOfMinute == Self.perMinute + 1)
        }
        if sent.count >= Self.remembered { forget(at: now) }
        sent[report] = now
        return .send
    }

    /// The dropped reports since the last call; nil: none.
    mutating func takeDropped() -> Int? {
        defer { dropped = 0 }
        return dropped > 0 ? dropped : nil
    }

    private mutating func forget(at now: MonotonicTime) {
        sent = sent.filter { now - $0.value < Self.repeatNanoseconds }
        guard sent.count >= Self.remembered, let oldest = sent.min(by: { $0.value < $1.value }) else { return }
        sent[oldest.key] = nil
    }
}
