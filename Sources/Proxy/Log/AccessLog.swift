import Configuration
import EventLoop
import HTTPWire
import Logging
import Security
import Session

/// The `exchange` events of one worker: a line for each, gathered and handed over together.
/// No header values, no query strings, no bodies.
final class AccessLog {
    /// Bytes that are handed over at once.
    private static let enough = 16 << 10
    /// How long a line waits for others. Each hand-over may wake the thread that writes, so that under load
    /// a request costs neither a system call nor an allocation of the log's.
    private static let gatheringNanoseconds: UInt64 = 10_000_000

    private let output: LogOutput
    private let loop: EventLoop
    private var line: EventLineWriter
    private let gatherer: LineGatherer
    private var isOn = true
    private lazy var deadline = Deadline(loop: loop) { [unowned self] in flush() }

    init(output: LogOutput, loop: EventLoop) {
        self.output = output
        self.loop = loop
        line = output.lineWriter()
        gatherer = output.lineGatherer()
    }

    func configure(_ settings: LogSettings) {
        isOn = settings.access
        // By now the output has what the settings say.
        guard line.format != output.format else { return }
        flush()
        line = output.lineWriter()
    }

    func write(_ record: borrowing TaskRecord, now: MonotonicTime) {
        // An intercepted CONNECT is told of by its requests, unless none can come.
        guard isOn, record.kind != .interception || record.failure != nil else { return }
        line.begin(event: "exchange", level: .info)
        line.field("task", record.number)
        if let client = record.client { line.field("client", client) }
        record.withMethodName { line.field("method", bytes: $0) }
        if let authority = record.authority {
            line.field("host", authority.host)
            line.field("port", authority.port)
        }
        if !record.path.isEmpty { line.field("path", bytes: record.path.span) }
        line.field("status", record.status)
        line.field("bytes_up", record.bytesUp)
        line.field("bytes_down", record.bytesDown)
        line.field("duration", nanoseconds: now - record.began)
        if let transaction = record.transaction {
            line.field("reused", transaction.isReused)
            if !transaction.isReused {
                let metrics = transaction.upstream.metrics
                line.field("lookup", nanoseconds: metrics.nameLookup)
                line.field("connect", nanoseconds: metrics.connect)
                line.field("tls", nanoseconds: metrics.tls)
                line.field("address", transaction.upstream.address)
                if let local = transaction.upstream.localAddress { line.field("local", local) }
            }
            if let sent = transaction.requestSent { line.field("request", nanoseconds: sent - record.began) }
            if let first = record.firstByte { line.field("first_byte", nanoseconds: first - record.began) }
        }
        if !record.retried.isEmpty { line.field("retried", json: Self.retried(record)) }
        if record.retriedCount > record.retried.count { line.field("retried_count", record.retriedCount) }
        if let shared = record.sharedTask { line.field("shared", shared) }
        if let last = record.hops.last {
            line.field("hops", json: Self.hops(record))
            line.field("location", last.url.description)
        }
        if let entry = record.entry { line.field("entry", entry) }
        if let verification = record.verification { line.field("verification", verification) }
        if let pin = record.matchedPin { line.field("pin", pin.origin) }
        if let type = record.errorType { line.field("error", type) }
        if let failure = record.failure { line.field("cause", failure) }
        line.end()
        if gatherer.add(&line) > Self.enough {
            flush()
        } else if !deadline.isSet {
            deadline.set(afterNanoseconds: Self.gatheringNanoseconds)
        }
    }

    /// The tries before the last, a list of objects; spans of time in milliseconds from the task's beginning.
    private static func retried(_ record: borrowing TaskRecord) -> [UInt8] {
        let start = record.began
        let tries = record.retried.map { transaction in
            var fields = ["\"address\":\"\(transaction.upstream.address)\"", "\"reused\":\(transaction.isReused)"]
            let times = [
                ("began", transaction.began), ("request", transaction.requestSent), ("first_byte", transaction.firstByte),
                ("ended", transaction.ended),
            ]
            for case (let name, let time?) in times { fields.append("\"\(name)\":\(Double((time - start) / 1000) / 1000)") }
            return "{" + fields.joined(separator: ",") + "}"
        }
        return Array("[\(tries.joined(separator: ","))]".utf8)
    }

    /// Where redirects led, a list of objects.
    private static func hops(_ record: borrowing TaskRecord) -> [UInt8] {
        // A URL that is followed holds nothing that JSON escapes.
        let hops = record.hops.map { "{\"status\":\($0.status),\"to\":\"\($0.url)\"}" }
        return Array("[\(hops.joined(separator: ","))]".utf8)
    }

    /// Hands over what was gathered.
    func flush() {
        deadline.clear()
        output.write(gatherer)
    }
}
