import Logging
import Synchronization

/// Events that wait for the collector (`telemetry` in pinproxy.yaml). Any thread adds them; the main loop takes them.
package final class TelemetryBuffer: Sendable {
    /// Events that matter to a fleet. None is about the sending itself.
    package static let events: Set<String> = [
        "certificate.expired", "certificate.expiring", "config.error", "config.fallback", "incident.acknowledged",
        "incident.open", "pin.enforced", "pin.expiring", "pin.mismatch", "pin.report", "policy.accepted",
        "policy.expired", "policy.expiring", "policy.failed", "policy.waiting", "trust.failure",
    ]

    private let isOpen = Atomic(false)
    private let queue = Mutex(TelemetryQueue())

    init() {}

    /// Closed, it forgets what waits.
    package func open(_ isOpen: Bool) {
        self.isOpen.store(isOpen, ordering: .relaxed)
        if !isOpen { queue.withLock { $0 = TelemetryQueue() } }
    }

    /// One atomic load if events aren't sent.
    func takes(_ event: String) -> Bool { isOpen.load(ordering: .relaxed) && Self.events.contains(event) }

    /// - Parameter time: milliseconds since 1970.
    func add(_ event: String, _ level: Logger.Level, at time: Int64, _ fields: Logger.Metadata) {
        // Events of the names that the proxy answers itself, for pinproxy doctor, are left out.
        guard fields["trial"] == nil else { return }
        let record = OTLPLogRecord.encoded(event, level, at: time, fields)
        queue.withLock { $0.add(record) }
    }

    /// Removes the oldest events, as many as fit into a request.
    package func take() -> [[UInt8]] { queue.withLock { $0.take() } }

    /// The collector can't take them now.
    package func putBack(_ records: [[UInt8]]) { queue.withLock { $0.putBack(records) } }

    package var isEmpty: Bool { queue.withLock { $0.isEmpty } }
    /// Evicted events.
    package var dropped: UInt64 { queue.withLock { $0.dropped } }
}

/// A bounded queue of encoded events: the oldest are evicted.
struct TelemetryQueue {
    static let countLimit = 1000
    static let bytesLimit = 1 << 20
    /// Most records of one request.
    static let batchCount = 256
    static let batchBytes = 256 << 10

    private var records: [[UInt8]] = []
    private var bytes = 0
    private(set) var dropped: UInt64 = 0

    var isEmpty: Bool { records.isEmpty }

    mutating func add(_ record: [UInt8]) {
        records.append(record)
        bytes += record.count
        makeRoom()
    }

    mutating func take() -> [[UInt8]] {
        var (count, size) = (0, 0)
        while count < min(records.count, Self.batchCount), count == 0 || size + records[count].count <= Self.batchBytes
        {
            size += records[count].count
            count += 1
        }
        defer {
            records.removeFirst(count)
            bytes -= size
        }
        return Array(records.prefix(count))
    }

    mutating func putBack(_ older: [[UInt8]]) {
        records.insert(contentsOf: older, at: 0)
        bytes += older.reduce(0) { $0 + $1.count }
        makeRoom()
    }

    private mutating func makeRoom() {
        var count = 0
        while records.count - count > Self.countLimit || bytes > Self.bytesLimit, count < records.count {
            bytes -= records[count].count
            count += 1
        }
        records.removeFirst(count)
        dropped += UInt64(count)
    }
}
