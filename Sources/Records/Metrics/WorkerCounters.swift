package import PinproxyEventLoop
import PinproxyHTTPWire
package import PinproxySecurity
package import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// Counts of one worker since its start. Its thread owns the value and copies it for the main loop
/// (``MetricsCollector``): requests take no lock, and don't touch other threads' memory.
package struct WorkerCounters: Sendable {
    package enum Outcome: Int, CaseIterable, Sendable {
        case completed
        /// The proxy answered itself, or aborted the tunnel's handshake.
        case refused
        /// Cut after it had begun, by either side.
        case broken
    }

    package struct Entry: Sendable {
        fileprivate(set) var exchanges = InlineArray<15, UInt64>(repeating: 0)
        package var pinsMatched: UInt64 = 0
        package var pinsMissed: UInt64 = 0
        package var pinsReported: UInt64 = 0

        package var hasPinChecks: Bool { pinsMatched > 0 || pinsMissed > 0 || pinsReported > 0 }

        package func exchanges(_ kind: Kind, _ outcome: Outcome) -> UInt64 {
            exchanges[kind.rawValue * 3 + outcome.rawValue]
        }

        mutating func add(_ other: Entry) {
            for index in exchanges.indices { exchanges[index] &+= other.exchanges[index] }
            pinsMatched &+= other.pinsMatched
            pinsMissed &+= other.pinsMissed
            pinsReported &+= other.pinsReported
        }
    }

    /// The kind of a client's request, and its HTTP version.
    package enum Kind: Int, CaseIterable, Sendable {
        case http1, http2, tunnel, upgrade
        /// Its requests are separate exchanges.
        case interception

        @inline(__always)
        package init(_ record: borrowing TaskRecord) {
            switch record.kind {
            case .exchange: self = record.stream == nil ? .http1 : .http2
            case .tunnel: self = .tunnel
            case .upgrade: self = .upgrade
            case .interception: self = .interception
            }
        }

        /// The value of the label `protocol`.
        package var label: String {
            switch self {
            case .http1: HTTPProtocol.http1.rawValue
            case .http2: HTTPProtocol.http2.rawValue
            case .tunnel: "tunnel"
            case .upgrade: "upgrade"
            case .interception: "connect"
            }
        }
    }

    /// Requests of one protocol by whether their connection had served before.
    package struct UpstreamRequests: Sendable {
        package fileprivate(set) var fresh: UInt64 = 0
        package fileprivate(set) var reused: UInt64 = 0

        @inline(__always)
        fileprivate mutating func note(isReused: Bool) {
            if isReused { reused &+= 1 } else { fresh &+= 1 }
        }

        fileprivate mutating func add(_ other: UpstreamRequests) {
            fresh &+= other.fresh
            reused &+= other.reused
        }
    }

    /// By place (``EntrySlots``), as needed.
    package private(set) var entries: [Entry] = []
    /// Empty for places without counts.
    package func entry(at slot: Int) -> Entry { entries.indices.contains(slot) ? entries[slot] : Entry() }
    /// Responses by the first digit of their status, without the proxy's own.
    package private(set) var statuses = InlineArray<6, UInt64>(repeating: 0)
    /// By error type of RFC 9209.
    package private(set) var refusals: [String: UInt64] = [:]
    package private(set) var duration = LatencyHistogram()
    package private(set) var firstByte = LatencyHistogram()
    package private(set) var nameLookup = LatencyHistogram()
    package private(set) var connect = LatencyHistogram()
    package private(set) var handshake = LatencyHistogram()
    package private(set) var bytesUp: UInt64 = 0
    package private(set) var bytesDown: UInt64 = 0
    package private(set) var http1Requests = UpstreamRequests()
    package private(set) var http2Requests = UpstreamRequests()
    package private(set) var tunnelRequests = UpstreamRequests()
    /// Tries that were followed by another, by reason.
    package private(set) var retried = [UInt64](repeating: 0, count: RetryRule.Reason.allCases.count)
    package func retried(for reason: RetryRule.Reason) -> UInt64 { retried[Int(reason.rawValue)] }
    package private(set) var http2 = HTTP2Counters()
    package private(set) var connectionsOpened: UInt64 = 0
    package private(set) var connectionsFailed: UInt64 = 0
    package private(set) var upstreamHandshakes: UInt64 = 0
    package private(set) var upstreamResumptions: UInt64 = 0
    package private(set) var clientHandshakes: UInt64 = 0
    package private(set) var clientResumptions: UInt64 = 0
    package private(set) var clientHandshakeFailures: UInt64 = 0

    package init() {}

    /// Counts an exchange that has ended, or the CONNECT before it.
    package mutating func count(_ record: borrowing TaskRecord, now: MonotonicTime) {
        guard record.entrySlot != EntrySlots.uncounted else { return }
        let outcome: Outcome = record.failure == nil ? .completed : record.errorType == nil ? .broken : .refused
        let kind = Kind(record)
        withEntry(record.entrySlot) { $0.exchanges[kind.rawValue * 3 + outcome.rawValue] &+= 1 }
        if outcome == .refused, let type = record.errorType { refusals[type, default: 0] += 1 }
        // Its requests are counted as exchanges.
        guard kind != .interception else { return }
        duration.note(now - record.began)
        bytesUp &+= record.bytesUp
        bytesDown &+= record.bytesDown
        if outcome != .refused, kind != .tunnel { statuses[min(max(record.status / 100, 0), 5)] &+= 1 }
        guard let isReused = record.transaction?.isReused else { return }
        if kind == .tunnel {
            tunnelRequests.note(isReused: isReused)
        } else if record.transaction?.upstream.hasStreams == true {
            http2Requests.note(isReused: isReused)
        } else {
            http1Requests.note(isReused: isReused)
        }
        for case let reason? in record.retried.lazy.map(\.retryReason) { retried[Int(reason.rawValue)] &+= 1 }
        if let first = record.firstByte { firstByte.note(first - record.began) }
    }

    /// For a connection attempt to an origin of that entry.
    package mutating func count(_ result: Result<UpstreamConnection, UpstreamFailure>, at slot: Int) {
        guard slot != EntrySlots.uncounted else { return }
        guard case .success(let connection) = result else {
            connectionsFailed += 1
            return
        }
        connectionsOpened += 1
        nameLookup.note(connection.metrics.nameLookup)
        connect.note(connection.metrics.connect)
        guard connection.stream.isSecure else { return }
        handshake.note(connection.metrics.tls)
        if connection.stream.withTLS({ $0.isResumed }) == true {
            upstreamResumptions += 1
        } else {
            upstreamHandshakes += 1
        }
    }

    package mutating func count(_ notice: HTTP2Notice, of peer: HTTP2Counters.Peer) { http2.count(notice, of: peer) }

    package mutating func count(_ verdict: Verdict, at slot: Int) {
        if verdict.refusal?.isPinFailure == true {
            count(.missed, at: slot)
        } else if verdict.report != nil {
            count(.reported, at: slot)
        } else if verdict.matchedPin != nil {
            count(.matched, at: slot)
        }
    }

    package enum PinCheck {
        case matched, missed, reported
    }

    package mutating func count(_ check: PinCheck, at slot: Int) {
        guard slot != EntrySlots.uncounted else { return }
        withEntry(slot) { entry in
            switch check {
            case .matched: entry.pinsMatched += 1
            case .missed: entry.pinsMissed += 1
            case .reported: entry.pinsReported += 1
            }
        }
    }

    /// - Parameter isResumed: nil: it failed.
    package mutating func countClientHandshake(isResumed: Bool?, at slot: Int) {
        guard slot != EntrySlots.uncounted else { return }
        switch isResumed {
        case true?: clientResumptions += 1
        case false?: clientHandshakes += 1
        case nil: clientHandshakeFailures += 1
        }
    }

    @inline(__always)
    private mutating func withEntry(_ slot: Int, _ change: (inout Entry) -> Void) {
        if slot >= entries.count { entries += Array(repeating: Entry(), count: slot + 1 - entries.count) }
        change(&entries[slot])
    }

    package mutating func add(_ other: WorkerCounters) {
        for (slot, entry) in other.entries.enumerated() { withEntry(slot) { $0.add(entry) } }
        for index in statuses.indices { statuses[index] &+= other.statuses[index] }
        refusals.merge(other.refusals) { $0 + $1 }
        duration.add(other.duration)
        firstByte.add(other.firstByte)
        nameLookup.add(other.nameLookup)
        connect.add(other.connect)
        handshake.add(other.handshake)
        bytesUp &+= other.bytesUp
        bytesDown &+= other.bytesDown
        http1Requests.add(other.http1Requests)
        http2Requests.add(other.http2Requests)
        tunnelRequests.add(other.tunnelRequests)
        for index in retried.indices { retried[index] &+= other.retried[index] }
        http2.add(other.http2)
        connectionsOpened += other.connectionsOpened
        connectionsFailed += other.connectionsFailed
        upstreamHandshakes += other.upstreamHandshakes
        upstreamResumptions += other.upstreamResumptions
        clientHandshakes += other.clientHandshakes
        clientResumptions += other.clientResumptions
        clientHandshakeFailures += other.clientHandshakeFailures
    }
}
