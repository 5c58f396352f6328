import PinproxyEventLoop
import PinproxyHTTPWire
package import PinproxySecurity
package import PinproxySession

/// A recent failure, for the status page and `pinproxy status`.
package struct RecentEvent: Codable, Sendable, Equatable {
    package enum Kind: String, Codable, Sendable {
        /// The proxy answered the client itself.
        case refused
        /// Reported only (`enforcement: report`).
        case reported
        /// Cut after it had begun.
        case broken
    }

    /// Ascending within one worker.
    package let number: UInt64
    package let worker: Int
    /// Milliseconds since 1970.
    package let time: Int64
    package let kind: Kind
    /// The client's address, and its identity if known.
    package let client: String?
    package let method: String
    package let host: String
    package let port: UInt16?
    package let entry: String?
    package let status: Int
    /// RFC 9209's error type.
    package let error: String?
    package let cause: String
    /// The client's text, if it says more than the cause.
    package let story: String?
    /// True, or nil, as from earlier versions.
    package var pinFailure: Bool?
    /// Equal for events that differ only in time and client. Valid within the process.
    package var group: String?

    package var isPinFailure: Bool { pinFailure == true }
    /// Pin failures share their room by this.
    fileprivate var subject: String { "\(kind.rawValue) \(host)" }

    /// A client can't provoke a collision: the hash is seeded at random.
    fileprivate var hash: String {
        var hasher = Hasher()
        hasher.combine([kind.rawValue, method, host, entry, error])
        hasher.combine([Int(port ?? 0), status, isPinFailure ? 1 : 0])
        // Process numbers in causes differ each time.
        var previous: Substring = ""
        for word in cause.split(separator: " ") {
            hasher.combine(previous == "process" ? word.drop { ("0"..."9").contains($0) } : word)
            previous = word
        }
        return String(UInt(bitPattern: hasher.finalize()), radix: 36)
    }
}

package struct RecentEventGroup: Sendable {
    package let latest: RecentEvent
    /// Milliseconds since 1970.
    package fileprivate(set) var first: Int64
    package fileprivate(set) var count = 1
}

extension [RecentEvent] {
    /// Groups equal events of a list, the latest first.
    package var grouped: [RecentEventGroup] {
        var groups: [RecentEventGroup] = []
        var places: [String: Int] = [:]
        for event in self {
            if let group = event.group, let place = places[group] {
                groups[place].count += 1
                groups[place].first = Swift.min(groups[place].first, event.time)
            } else {
                if let group = event.group { places[group] = groups.count }
                groups.append(RecentEventGroup(latest: event, first: event.time))
            }
        }
        return groups
    }

    /// Shortens a list, the latest first. Up to half is for pin failures: one of each host first.
    package func latest(_ limit: Int) -> [RecentEvent] {
        let failures = indices.filter { self[$0].isPinFailure }
        let room = Swift.min(failures.count, Swift.max(limit / 2, limit - (count - failures.count)))
        var subjects: Set<String> = []
        var (first, further): ([Int], [Int]) = ([], [])
        for place in failures {
            if subjects.insert(self[place].subject).inserted { first.append(place) } else { further.append(place) }
        }
        var chosen = Set((first + further).prefix(room))
        chosen.formUnion(indices.lazy.filter { !self[$0].isPinFailure }.prefix(limit - room))
        return indices.filter(chosen.contains).map { self[$0] }
    }
}

/// The last events of one worker. Pin failures have separate capacity, shared by host: frequent events don't displace
/// them.
package struct RecentEvents: Sendable {
    static let capacity = 64
    private static let longestStory = 4096
    private static let longestText = 512

    private let worker: Int
    private var pinFailures: [RecentEvent] = []
    private var others: [RecentEvent] = []
    private var next: UInt64 = 1

    package init(worker: Int) { self.worker = worker }

    package var all: [RecentEvent] { pinFailures + others }

    package mutating func note(_ record: borrowing TaskRecord, at time: Int64) {
        guard let failure = record.failure, record.entrySlot != EntrySlots.uncounted else { return }
        add(
            record.errorType == nil ? .broken : .refused, at: time, client: Self.client(record),
            method: record.methodName, host: record.authority?.host ?? "", port: record.authority?.port,
            entry: record.entry,
            status: record.status, error: record.errorType, cause: failure, story: record.story,
            isPinFailure: record.isPinFailure)
    }

    private static func client(_ record: borrowing TaskRecord) -> String? {
        guard let client = record.client else { return nil }
        return record.traits.map { "\(client): \(cut($0.description, longestText))" } ?? "\(client)"
    }

    /// A reported chain without a pin.
    /// - Parameter connection: lines about the origin's address and the client.
    package mutating func note(
        _ refusal: Refusal, host: String, port: UInt16, entry: String?, connection: String = "", at time: Int64
    ) {
        let story = connection.isEmpty ? refusal.details : refusal.details + "\n" + connection
        add(
            .reported, at: time, client: nil, method: "", host: host, port: port, entry: entry, status: 0, error: nil,
            cause: refusal.title, story: story, isPinFailure: true)
    }

    private mutating func add(
        _ kind: RecentEvent.Kind, at time: Int64, client: String?, method: String, host: String, port: UInt16?,
        entry: String?,
        status: Int, error: String?, cause: String, story: String?, isPinFailure: Bool
    ) {
        let story = story.map { Self.cut($0, Self.longestStory) }
        var event = RecentEvent(
            number: next, worker: worker, time: time, kind: kind, client: client, method: Self.cut(method, 32),
            host: Self.cut(host, Self.longestText), port: port, entry: entry, status: status, error: error,
            cause: Self.cut(cause, Self.longestText), story: story == cause ? nil : story,
            pinFailure: isPinFailure ? true : nil)
        event.group = event.hash
        next += 1
        if isPinFailure { return keep(event) }
        if others.count >= Self.capacity { others.removeFirst(others.count - Self.capacity + 1) }
        others.append(event)
    }

    /// The host with the most failures loses its oldest.
    private mutating func keep(_ failure: RecentEvent) {
        if pinFailures.count >= Self.capacity {
            let counts = pinFailures.reduce(into: [String: Int]()) { $0[$1.subject, default: 0] += 1 }
            let most = counts.values.max()
            pinFailures.remove(at: pinFailures.firstIndex { counts[$0.subject] == most } ?? 0)
        }
        pinFailures.append(failure)
    }

    private static func cut(_ text: String, _ longest: Int) -> String {
        text.utf8.count <= longest ? text : String(decoding: text.utf8.prefix(longest), as: UTF8.self) + "…"
    }
}
