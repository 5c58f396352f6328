import Logging
package import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
package import PinproxySession
import PinproxyTLS

/// One worker's `exchange` events, a line each, handed over together. No header values, queries or bodies.
package final class AccessLog {
    private static let enough = 16 << 10
    /// For lines to gather: under load the log costs requests no system call and no allocation.
    private static let gatheringNanoseconds: UInt64 = 10_000_000

    private let output: LogOutput
    private let loop: EventLoop
    private var line: EventLineWriter
    private let gatherer: LineGatherer
    private var isOn = true
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.flush() }

    package init(output: LogOutput, loop: EventLoop) {
        self.output = output
        self.loop = loop
        line = output.lineWriter()
        gatherer = output.lineGatherer()
    }

    package func configure(_ settings: LogSettings) {
        isOn = settings.access
        // The output already has the settings.
        guard line.format != output.format else { return }
        flush()
        line = output.lineWriter()
    }

    package func write(_ record: borrowing TaskRecord, now: MonotonicTime) {
        // An intercepted CONNECT is logged by its requests, unless it failed.
        guard isOn, record.kind != .interception || record.failure != nil else { return }
        // One exclusive access, since each is checked.
        line.put(record, now: now)
        if gatherer.add(&line) > Self.enough {
            flush()
        } else if !deadline.isSet {
            deadline.set(afterNanoseconds: Self.gatheringNanoseconds)
        }
    }

    package func flush() {
        deadline.clear()
        output.write(gatherer)
    }
}

extension TaskRecord {
    fileprivate var refusedContact: OriginContact? { errorType == nil ? nil : contact }
}

extension EventLineWriter {
    /// The `exchange` line of a completed task.
    mutating func put(_ record: borrowing TaskRecord, now: MonotonicTime) {
        begin(event: "exchange", level: .info)
        field("task", record.number)
        switch record.client {
        case .network(let address): field("client", address)
        case .unix: if let client = record.client { field("client", client.description) }
        case nil: break
        }
        if let traits = record.traits { put(traits) }
        if let name = record.clientProtocol { field("protocol", name) }
        if let stream = record.stream { field("stream", stream) }
        if let group = record.clientGroup { field("client_tls_group", group) }
        record.withMethodName { field("method", bytes: $0) }
        if let authority = record.authority {
            field("host", authority.host)
            field("port", authority.port)
        }
        if !record.path.isEmpty { field("path", bytes: record.path.span) }
        field("status", record.status)
        field("bytes_up", record.bytesUp)
        field("bytes_down", record.bytesDown)
        field("duration", nanoseconds: now - record.began)
        if let transaction = record.transaction {
            if let name = record.upstreamProtocol { field("upstream_protocol", name) }
            if let stream = transaction.stream { field("upstream_stream", stream) }
            field("reused", transaction.isReused)
            if !transaction.isReused {
                let metrics = transaction.upstream.metrics
                field("lookup", nanoseconds: metrics.nameLookup)
                field("connect", nanoseconds: metrics.connect)
                field("tls", nanoseconds: metrics.tls)
                let refused = record.refusedContact
                // The fields of the refused connection follow: this one may be from before a redirect.
                if refused == nil {
                    if let group = metrics.group { field("tls_group", group) }
                    field("address", transaction.upstream.address)
                }
                if let local = transaction.upstream.localAddress,
                    refused.map({ $0.address == transaction.upstream.address }) ?? true
                {
                    field("local", local)
                }
            }
            if let sent = transaction.requestSent { field("request", nanoseconds: sent - record.began) }
            if let first = record.firstByte { field("first_byte", nanoseconds: first - record.began) }
        }
        if !record.retried.isEmpty { field("retried", json: Self.retried(record)) }
        if record.retriedCount > record.retried.count { field("retried_count", record.retriedCount) }
        if let cache = record.cache { field("cache", cache.rawValue) }
        if let shared = record.sharedTask { field("shared", shared) }
        if let last = record.hops.last {
            field("hops", json: Self.hops(record))
            field("location", last.url.description)
        }
        if let entry = record.entry { field("entry", entry) }
        if let verification = record.verification { field("verification", verification) }
        if let pin = record.matchedPin { field("pin", pin) }
        if let type = record.errorType {
            field("error", type)
            if let contact = record.refusedContact { put(contact) }
        }
        if record.entrySlot == EntrySlots.uncounted { field("trial", true) }
        if let failure = record.failure { field("cause", failure) }
        end()
    }

    /// Writes the fields of the refused origin.
    private mutating func put(_ contact: OriginContact) {
        field("address", contact.address)
        if let resolved = contact.resolved { field("resolved", resolved) }
        if let source = contact.source { field("resolver", source) }
        guard let tls = contact.tls else { return }
        field("tls_version", "\(tls.version)")
        field("cipher", tls.cipher)
        if let group = tls.group { field("tls_group", group) }
    }

    private mutating func put(_ traits: ClientTraits) {
        field("client_uid", UInt64(traits.user))
        if let process = traits.process { field("client_pid", Int(process)) }
        if traits.holders > 1 { field("client_pids", traits.holders) }
        if let executable = traits.executable { field("client_exe", executable) }
        if let unit = traits.unit { field("client_unit", unit) }
    }

    /// The tries before the last as objects; seconds from the task's beginning.
    private static func retried(_ record: borrowing TaskRecord) -> [UInt8] {
        let start = record.began
        let tries = record.retried.map { transaction in
            var fields = ["\"address\":\"\(transaction.upstream.address)\"", "\"reused\":\(transaction.isReused)"]
            let times = [
                ("began", transaction.began), ("request", transaction.requestSent),
                ("first_byte", transaction.firstByte),
                ("ended", transaction.ended),
            ]
            if let stream = transaction.stream { fields.append("\"stream\":\(stream)") }
            if let reason = transaction.retryReason { fields.append("\"reason\":\"\(reason.name)\"") }
            for case (let name, let time?) in times {
                fields.append("\"\(name)\":\(Double((time - start) / 1000) / 1_000_000)")
            }
            return "{" + fields.joined(separator: ",") + "}"
        }
        return Array("[\(tries.joined(separator: ","))]".utf8)
    }

    private static func hops(_ record: borrowing TaskRecord) -> [UInt8] {
        // Followed URLs hold nothing that JSON escapes.
        let hops = record.hops.map { "{\"status\":\($0.status),\"to\":\"\($0.url)\"}" }
        return Array("[\(hops.joined(separator: ","))]".utf8)
    }
}
