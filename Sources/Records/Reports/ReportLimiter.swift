import EventLoop
import TLS

/// Which reports are worth sending: each once an hour, and no more than a collector can be asked to
/// take of one proxy. A client that asks again and again for a host whose pins are wrong makes no
/// more reports than one that asks once.
struct ReportLimiter {
    enum Ruling: Equatable {
        case send
        /// Said within the hour.
        case `repeat`
        /// Too many in this minute; `isNews` for the first of them.
        case drop(isNews: Bool)
    }

    static let minuteNanoseconds: UInt64 = 60_000_000_000

    static let repeatNanoseconds: UInt64 = 3600 * 1_000_000_000
    static let perMinute = 30
    /// Reports that are remembered, to be told from new ones.
    static let remembered = 1024

    private var sent: [SHA256Digest: MonotonicTime] = [:]
    private var minuteBegan: MonotonicTime?
    private var countOfMinute = 0
    /// Reports of this minute that were new and not sent.
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

    /// How many were dropped that nobody has been told of, once; nil if none were.
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
