import PinproxySecurity
package import PinproxyTLS

/// Counts how often each rule was applied and what it found, across restarts: which rule never applies, which refuses,
/// which report-only rule is ready to enforce. Rules go by their writer and requests, not by number, so that they keep
/// their counts when they are moved. Removed rules are remembered for a while.
///
/// ```json
/// {"rules": [{"entry": "api.example.com", "requests": "/v1/** (GET)", "since": 1893456000, "applied": 7, "last":
/// 1893459600,
///   "refusals": [{"day": 21915, "count": 2}], "lastRefusal": …, "refusalCause": "Unacceptable status 500", …}]}
/// ```
package struct RuleHistory: Codable, Sendable, Equatable {
    package struct Name: Codable, Hashable, Sendable, Comparable {
        /// Nil: `defaults`.
        package let entry: String?
        /// The path and methods of an item of `rules`, e.g. `/v1/** (GET)`; nil: all requests.
        package let requests: String?

        package init(entry: String?, requests: String?) {
            self.entry = entry
            self.requests = requests
        }

        package static func < (one: Name, other: Name) -> Bool {
            (one.entry ?? "", one.requests ?? "") < (other.entry ?? "", other.requests ?? "")
        }
    }

    package struct Day: Codable, Sendable, Equatable {
        /// Since 1970, in UTC.
        package let day: Int64
        package var count: Int
    }

    package struct Findings: Codable, Sendable, Equatable {
        /// The oldest first.
        package private(set) var days: [Day] = []
        package private(set) var total = 0
        package private(set) var last: UnixTime?
        package private(set) var cause: String?

        package init() {}

        /// Within seven days, today included.
        package func lately(at time: UnixTime) -> Int {
            let today = RuleHistory.day(of: time)
            return days.reduce(0) { $0 + (today - $1.day < RuleHistory.window ? $1.count : 0) }
        }

        mutating func add(_ cause: String, at time: UnixTime) {
            let today = RuleHistory.day(of: time)
            days.removeAll { today - $0.day >= RuleHistory.window }
            if let index = days.firstIndex(where: { $0.day == today }) {
                days[index].count += 1
            } else {
                days.append(Day(day: today, count: 1))
            }
            total += 1
            last = time
            self.cause = String(cause.prefix(RuleHistory.longestCause))
        }

        fileprivate var isWithinBounds: Bool {
            HistoryBounds.admit(counts: total) && HistoryBounds.admit(dates: last)
                && days.count <= 2 * RuleHistory.window
                && days.allSatisfy { HistoryBounds.admit(counts: $0.count) && HistoryBounds.admit(dates: $0.day) }
        }
    }

    package struct Record: Codable, Sendable, Equatable {
        package var since: UnixTime
        package var applied = 0
        /// The time of the last count, made once a minute.
        package var last: UnixTime?
        /// Responses refused by its keys.
        package var refusals = Findings()
        package var reports = Findings()
        /// Responses judged since the last report.
        package var rightSinceReport = 0
        /// The start of these counts; nil: not report-only.
        package var reportOnlySince: UnixTime?
        /// A digest of its demands: new ones restart the count.
        package var demands: String?
        package var removed: UnixTime?

        init(since: UnixTime) { self.since = since }
    }

    package private(set) var records: [Name: Record] = [:]

    package init() {}

    package static let fileName = "rules.json"
    /// How long removed rules are kept: as long as pins.
    package static let retention = PinHistory.retention
    package static let maximumRules = 20_000
    fileprivate static let window: Int64 = 7
    fileprivate static let longestCause = 300

    fileprivate static func day(of time: UnixTime) -> Int64 { time.quotientAndRemainder(dividingBy: 86_400).quotient }

    // MARK: Counting

    /// Adds new rules, marks removed ones, and forgets those after ``retention``.
    /// - Parameter configured: digests of the demands of report-only rules.
    /// - Returns: whether there was room for all.
    @discardableResult
    package mutating func settle(_ configured: [Name: String?], at time: UnixTime) -> Bool {
        for (name, record) in records where configured[name] == nil {
            let removed = record.removed ?? time
            records[name]?.removed = removed
            if time - removed > Self.retention { records[name] = nil }
        }
        var isRoom = true
        for (name, demands) in configured {
            guard records[name] != nil || records.count < Self.maximumRules else {
                isRoom = false
                continue
            }
            var record = records[name] ?? Record(since: time)
            record.removed = nil
            if record.demands != demands {
                record.demands = demands
                record.rightSinceReport = 0
                record.reportOnlySince = demands == nil ? nil : time
            }
            records[name] = record
        }
        return isRoom
    }

    package mutating func applied(_ name: Name, exchanges: Int, at time: UnixTime) {
        guard exchanges > 0, let index = records.index(forKey: name) else { return }
        records.values[index].applied += exchanges
        records.values[index].last = time
    }

    /// - Parameter responses: judged by its `enforcement: report`.
    package mutating func judged(_ name: Name, responses: Int) {
        guard let index = records.index(forKey: name) else { return }
        records.values[index].rightSinceReport += responses
    }

    package mutating func refused(_ name: Name, cause: String, at time: UnixTime) {
        guard let index = records.index(forKey: name) else { return }
        records.values[index].refusals.add(cause, at: time)
    }

    package mutating func reported(_ name: Name, cause: String, at time: UnixTime) {
        guard let index = records.index(forKey: name) else { return }
        records.values[index].reports.add(cause, at: time)
        records.values[index].rightSinceReport = 0
    }

    // MARK: Coding

    private enum CodingKeys: String, CodingKey { case rules }

    private struct Rule: Codable {
        let name: Name
        let record: Record

        init(_ name: Name, _ record: Record) { (self.name, self.record) = (name, record) }

        init(from decoder: any Decoder) throws {
            name = try Name(from: decoder)
            record = try Record(from: decoder)
        }

        func encode(to encoder: any Encoder) throws {
            try name.encode(to: encoder)
            try record.encode(to: encoder)
        }
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        for rule in try values.decode([Rule].self, forKey: .rules) {
            guard rule.record.isWithinBounds else {
                throw DecodingError.dataCorruptedError(
                    forKey: .rules, in: values,
                    debugDescription:
                        "a count or a date of \(rule.name.entry ?? "defaults") \(rule.name.requests ?? "") is out of "
                        + "bounds")
            }
            records[rule.name] = rule.record
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(records.sorted { $0.key < $1.key }.map { Rule($0.key, $0.value) }, forKey: .rules)
    }
}

extension RuleHistory.Record {
    fileprivate var isWithinBounds: Bool {
        HistoryBounds.admit(counts: applied, rightSinceReport)
            && HistoryBounds.admit(dates: since, last, reportOnlySince, removed)
            && refusals.isWithinBounds && reports.isWithinBounds
    }
}
