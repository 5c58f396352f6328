import PinproxyClients
import PinproxyConfiguration
import PinproxyDecoding
import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// The answer of `GET /metrics` (docs/metrics.md).
struct MetricsReport {
    struct Daemon {
        var version = ""
        var replacedLibraries = 0
        var clients = 0
        var clientLimit = 0
        var entryCount = 0
        var reportOnlyCount = 0
        var generation = 0
        var readAt: UnixTime = 0
        var reloadsAccepted = 0
        var reloadsRefused = 0
        var lastReloadFailed = false
        var isFallback = false
        var digest = ""
        var policy: PolicyStatus?
        var telemetry: TelemetryStatus?
        var insecureSwitches = 0
        var warnings = 0
        var leavesIssued = 0
        var leavesEvicted = 0
        var leavesHeld = 0
        var decoders: DecoderCounts?
        var budget: BodyBudget?
        var cache: ResponseCache?
        var pressure: MemoryPressure?
        var reachability: [TargetStatus] = []
        var ownCertificates: [OwnCertificate] = []
        /// Other things that end within 30 days, the most urgent first.
        var expiring: [ExpiryWatch.Finding] = []
        var openIncidents: [Incident] = []
        var deadPins: [DeadPins] = []
        var entryNames: [String] = []
        /// Places of entries with pins (``EntrySlots``).
        var pinnedSlots: Set<Int> = []
    }

    static let expiringLimit = 100

    let daemon: Daemon
    let measurement: ProxyMeasurement

    func text(_ format: MetricsText.Format, figures: ProcessFigures? = ProcessFigures()) -> [UInt8] {
        let counters = measurement.counters
        var text = MetricsText(format)
        build(&text)
        exchanges(counters, &text)
        pins(counters, &text)
        latencies(counters, &text)
        connections(counters, &text)
        if let budget = daemon.budget { Self.bodies(budget, &text) }
        if let cache = daemon.cache { CacheMetrics(cache).write(to: &text) }
        if let pressure = daemon.pressure, let use = pressure.use { Self.memory(use, pressure.level, &text) }
        if let decoders = daemon.decoders { Self.decoders(decoders, &text) }
        workers(&text)
        network(&text)
        ConfigurationMetrics(daemon: daemon).write(to: &text)
        TelemetryMetrics(status: daemon.telemetry).write(to: &text)
        if let figures { Self.process(figures, &text) }
        return text.finished()
    }

    func build(_ text: inout some MetricsWriter) {
        text.family(
            "pinproxy_build_info", .gauge,
            "The versions that run, as labels: of the program, and of libraries that it has loaded.")
        let libraries = LibraryVersions.all.map { ($0.name.lowercased().replacing("-", with: "_"), $0.version) }
        text.sample([("version", daemon.version)] + libraries, 1)
        text.family("pinproxy_replaced_libraries", .gauge, "Libraries that were replaced on disk since the start.")
        text.sample([], daemon.replacedLibraries)
    }

    func name(_ slot: Int) -> String {
        daemon.entryNames.indices.contains(slot) ? daemon.entryNames[slot] : "(others)"
    }

    static func exchanges(to text: inout some MetricsWriter) {
        text.family(
            "pinproxy_exchanges", .counter,
            "Exchanges that are over, by the entry that decided, what they were, and how they ended. connect: an "
                + "intercepted CONNECT; its requests count as exchanges.")
    }

    static func refusals(_ counters: WorkerCounters, _ text: inout some MetricsWriter) {
        text.family(
            "pinproxy_refusals", .counter, "Exchanges that the proxy answered itself, by error type (RFC 9209).")
        let refusals = counters.refusals.merging(RefusalErrors.all.map { ($0, 0) }) { count, _ in count }
        for (error, count) in refusals.sorted(by: { $0.key < $1.key }) { text.sample([("error", error)], count) }
    }

    private func exchanges(_ counters: WorkerCounters, _ text: inout MetricsText) {
        Self.exchanges(to: &text)
        for slot in 0..<max(counters.entries.count, EntrySlots.others + 1) {
            let entry = counters.entry(at: slot)
            for kind in WorkerCounters.Kind.allCases {
                let counts = WorkerCounters.Outcome.allCases.map { ($0, entry.exchanges(kind, $0)) }
                // An entry has a protocol's outcomes once one has occurred; `(defaults)` and `(others)` have all.
                guard slot <= EntrySlots.others || counts.contains(where: { $0.1 > 0 }) else { continue }
                for (outcome, count) in counts {
                    text.sample([("entry", name(slot)), ("protocol", kind.label), ("outcome", "\(outcome)")], count)
                }
            }
        }
        text.family("pinproxy_responses", .counter, "Responses of origins, by the class of their status.")
        for digit in 1...5 { text.sample([("code", "\(digit)xx")], counters.statuses[digit]) }
        Self.refusals(counters, &text)
        text.family(
            "pinproxy_transferred_bytes", .counter, "Bytes passed on, heads included; up is from clients to origins.")
        text.sample([("direction", "up")], counters.bytesUp)
        text.sample([("direction", "down")], counters.bytesDown)
        text.family("pinproxy_tasks", .gauge, "Exchanges in flight.", measurement.sum(\.open.tasks))
        text.family("pinproxy_clients", .gauge, "Connections of clients.", daemon.clients)
        text.family(
            "pinproxy_client_connections_open", .gauge,
            "Connections of clients by what is spoken, inside CONNECT once that has begun.")
        for kind in Self.spoken {
            text.sample([("protocol", kind.label)], measurement.sum { $0.open.clients[kind] ?? 0 })
        }
        text.family(
            "pinproxy_client_streams_open", .gauge, "Streams on HTTP/2 connections of clients.",
            measurement.sum(\.open.clientStreams))
        text.family("pinproxy_clients_limit", .gauge, "How many there may be (limits.clients).", daemon.clientLimit)
    }

    private func pins(_ counters: WorkerCounters, _ text: inout MetricsText) {
        PinMetrics.checks(to: &text)
        let used = counters.entries.indices.filter { $0 > EntrySlots.none && counters.entries[$0].hasPinChecks }
        for slot in daemon.pinnedSlots.union(used).sorted() {
            let entry = counters.entry(at: slot)
            let results = [
                ("matched", entry.pinsMatched), ("missed", entry.pinsMissed), ("reported", entry.pinsReported),
            ]
            for (result, count) in results { text.sample([("entry", name(slot)), ("result", result)], count) }
        }
        let pins = PinMetrics(daemon: daemon)
        pins.incidents(to: &text) { $0 }
        pins.dead(to: &text) { $0 }
        PinMetrics.ends(to: &text)
        pins.ownEnds(to: &text)
        var seen: Set<[String]> = []
        for finding in daemon.expiring.prefix(Self.expiringLimit) {
            let entry = finding.entry ?? (finding.subject.isOfPolicy ? "" : "(defaults)")
            let values = [finding.subject.rawValue, entry, finding.name ?? ""]
            guard seen.insert(values).inserted else { continue }
            text.sample([("what", values[0]), ("entry", values[1]), ("name", values[2])], finding.date)
        }
    }

    private func latencies(_ counters: WorkerCounters, _ text: inout MetricsText) {
        text.family(
            "pinproxy_exchange_duration_seconds", "From a request to the end of its response; tunnels included.",
            counters.duration)
        text.family(
            "pinproxy_first_byte_seconds", "From a request to the first byte of the origin's response.",
            counters.firstByte)
        text.family(
            "pinproxy_upstream_lookup_seconds", "Name lookup of new connections to origins.", counters.nameLookup)
        text.family(
            "pinproxy_upstream_connect_seconds", "TCP, and the parent proxy, of new connections to origins.",
            counters.connect)
        text.family("pinproxy_upstream_handshake_seconds", "TLS of new connections to origins.", counters.handshake)
    }

    private func connections(_ counters: WorkerCounters, _ text: inout MetricsText) {
        text.family("pinproxy_client_handshakes", .counter, "TLS handshakes with clients, inside CONNECT.")
        text.sample([("result", "full")], counters.clientHandshakes)
        text.sample([("result", "resumed")], counters.clientResumptions)
        text.sample([("result", "failed")], counters.clientHandshakeFailures)
        text.family("pinproxy_upstream_handshakes", .counter, "TLS handshakes with origins that succeeded.")
        text.sample([("result", "full")], counters.upstreamHandshakes)
        text.sample([("result", "resumed")], counters.upstreamResumptions)
        text.family("pinproxy_upstream_connections", .counter, "Attempts to connect to an origin.")
        text.sample([("result", "opened")], counters.connectionsOpened)
        text.sample([("result", "failed")], counters.connectionsFailed)
        text.family(
            "pinproxy_upstream_connections_open", .gauge,
            "Connections to origins: in use, or kept for the next request.")
        for kind in Self.spoken {
            text.sample(
                [("protocol", kind.label), ("state", "busy")], measurement.sum { $0.open.upstreams[kind] ?? 0 })
        }
        text.sample(
            [("protocol", WorkerCounters.Kind.http1.label), ("state", "idle")],
            measurement.sum { $0.idleUpstreams - $0.idleShared })
        text.sample([("protocol", WorkerCounters.Kind.http2.label), ("state", "idle")], measurement.sum(\.idleShared))
        text.family(
            "pinproxy_upstream_streams_open", .gauge, "Streams on HTTP/2 connections to origins.",
            measurement.sum(\.open.upstreamStreams))
        text.family(
            "pinproxy_upstream_requests", .counter,
            "Requests by the origin's protocol, and by whether their connection had served before.")
        for (kind, requests) in [
            (WorkerCounters.Kind.http1, counters.http1Requests), (.http2, counters.http2Requests),
            (.tunnel, counters.tunnelRequests),
        ] {
            text.sample([("protocol", kind.label), ("connection", "fresh")], requests.fresh)
            text.sample([("protocol", kind.label), ("connection", "reused")], requests.reused)
        }
        text.family("pinproxy_upstream_retries", .counter, "Requests sent once more, by the reason.")
        for reason in RetryRule.Reason.allCases where reason != .notShared {
            text.sample([("reason", reason.name)], counters.retried(for: reason))
        }
        http2(counters.http2, &text)
        text.family("pinproxy_name_lookups", .counter, "Names looked up, by where the answer came from.")
        text.sample([("result", "cached")], measurement.sum(\.lookups.cached))
        text.sample([("result", "found")], measurement.sum(\.lookups.found))
        text.sample([("result", "failed")], measurement.sum(\.lookups.failed))
        text.family("pinproxy_leaves_issued", .counter, "Certificates issued for clients.", daemon.leavesIssued)
        text.family("pinproxy_leaves_evicted", .counter, "Certificates that made room for others.")
        text.sample([], daemon.leavesEvicted)
        text.family("pinproxy_leaves", .gauge, "Hosts whose certificates are kept.", daemon.leavesHeld)
    }

    private static let spoken: [WorkerCounters.Kind] = [.http1, .http2, .tunnel, .upgrade]

    private func http2(_ counters: HTTP2Counters, _ text: inout MetricsText) {
        text.family(
            "pinproxy_http2_floods", .counter, "HTTP/2 connections ended for a flood of frames, by who sent it.")
        for peer in HTTP2Counters.Peer.allCases {
            for (name, count) in counters.floods(of: peer) {
                text.sample([("peer", peer.rawValue), ("flood", name)], count)
            }
        }
        text.family(
            "pinproxy_http2_protocol_errors", .counter,
            "HTTP/2 connections ended for a breach of the protocol, by who broke it.")
        for peer in HTTP2Counters.Peer.allCases { text.sample([("peer", peer.rawValue)], counters.broken(by: peer)) }
        text.family(
            "pinproxy_http2_goaways", .counter, "HTTP/2 connections on which the peer sent GOAWAY, by its error code.")
        for peer in HTTP2Counters.Peer.allCases {
            for (code, count) in counters.goAways(of: peer) {
                text.sample([("peer", peer.rawValue), ("code", code)], count)
            }
        }
    }

    private static func bodies(_ budget: BodyBudget, _ text: inout MetricsText) {
        text.family("pinproxy_kept_bodies_bytes", .gauge, "Bytes of bodies that are kept.", budget.inUse)
        text.family("pinproxy_kept_bodies_limit_bytes", .gauge, "How many there may be (limits.bodies).", budget.limit)
        text.family(
            "pinproxy_kept_bodies_refused", .counter,
            "Bodies that were not kept for lack of room. request and response: the client got 503, unless a rule only "
                + "reports; shared: readers go on alone; replay: can't be sent again.")
        let refused = budget.refused
        for purpose in BodyBudget.Purpose.allCases { text.sample([("what", purpose.rawValue)], refused[purpose] ?? 0) }
    }

    private static func memory(_ use: MemoryUse, _ level: MemoryPressure.Level, _ text: inout MetricsText) {
        text.family(
            "pinproxy_memory_used_bytes", .gauge,
            "Memory that the control group takes, without what the kernel takes back first.")
        text.sample([], use.used)
        text.family("pinproxy_memory_limit_bytes", .gauge, "How much it may take.", use.limit)
        text.family(
            "pinproxy_memory_pressure", .gauge,
            "1: new clients wait, and idle connections are closed; 2: requests get 503 besides.")
        text.sample([], level.rawValue)
    }

    private static func decoders(_ counts: DecoderCounts, _ text: inout MetricsText) {
        text.family(
            "pinproxy_decoded_bodies", .counter,
            """
            Bodies given to processes that decode. failed: the process ended; refused: there was no room, or no \
            process.
            """
        )
        let results = [
            ("done", counts.done), ("timeout", counts.timedOut), ("failed", counts.failed), ("refused", counts.refused),
        ]
        for (result, count) in results { text.sample([("result", result)], count) }
        text.family("pinproxy_decoder_starts", .counter, "Processes that decode, by whether they got ready.")
        text.sample([("result", "failed")], counts.failedStarts)
        text.sample([("result", "ready")], counts.starts - counts.failedStarts)
        text.family("pinproxy_decoders", .gauge, "Processes that decode.", counts.processes.count)
        text.family("pinproxy_decoder_queue", .gauge, "Bodies that wait to be decoded.", counts.waiting)
    }

    private func workers(_ text: inout MetricsText) {
        text.family("pinproxy_worker_up", .gauge, "1 while the worker answers.")
        for number in measurement.workers.indices {
            text.sample([("worker", "\(number + 1)")], measurement.silent.contains(number) ? 0 : 1)
        }
        text.family("pinproxy_worker_lag_seconds", .gauge, "How long this question waited for the worker's loop.")
        for case (let number, let worker?) in measurement.workers.enumerated() {
            // A silent worker lags by at least the patience.
            let lag = measurement.silent.contains(number) ? WorkerInquiry.patience.nanoseconds : worker.lag
            text.sample([("worker", "\(number + 1)")], Double(lag) / 1e9)
        }
    }

    private func network(_ text: inout MetricsText) {
        text.family(
            "pinproxy_network_reachable", .gauge,
            "1 if the target of reachability can be reached, 0 if not; absent if unknown.")
        for target in daemon.reachability where target.status != "unknown" {
            text.sample([("target", target.target)], target.status == "not-reachable" ? 0 : 1)
        }
    }

    private static func process(_ figures: ProcessFigures, _ text: inout MetricsText) {
        text.family("process_cpu_seconds", .counter, "User and system time of the process.")
        text.sample([], figures.processorSeconds)
        text.family("process_resident_memory_bytes", .gauge, "Memory that the process has resident.")
        text.sample([], figures.residentBytes)
        text.family("process_virtual_memory_bytes", .gauge, "Memory that the process has mapped.", figures.virtualBytes)
        text.family("process_start_time_seconds", .gauge, "When the process started.")
        text.sample([], figures.started)
        text.family("process_open_fds", .gauge, "File descriptors that are open.", figures.openDescriptors)
        text.family("process_max_fds", .gauge, "File descriptors that there may be.", figures.descriptorLimit)
        text.family("process_threads", .gauge, "Threads of the process.", figures.threads)
    }
}

/// Versions of the libraries in the proxy process, not in the decoders.
package enum LibraryVersions {
    package static var all: [(name: String, version: String)] {
        [("OpenSSL", OpenSSLLibrary.version)] + EventLoopLibraries.versions + [("nghttp2", HTTP2Library.version)]
    }
}
