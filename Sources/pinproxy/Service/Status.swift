internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", _superCommandName: Pinproxy.name,
        abstract: "Show a running proxy: uptime, clients, recent refusals, pins that expire soon.",
        discussion: """
            The proxy is asked over control.sock in its state directory. For other users than its own and root, this \
            prints what the proxy last wrote there, at most a minute ago. Each connection to a server counts once, \
            whatever the number of requests on it. A connection that met a pin counts for every pin of the entry that \
            its chain meets, backups included; one that met none is a miss, refused or (enforcement: report) let \
            through. pinproxy lint says what the counts mean.

            --json prints one object: running, process, state_directory; of a running proxy also configuration, \
            changed_files (since it \
            read them), listen, clients, reachability (a list with target, status, reason, link, kind), last_reload \
            (accepted or refused), learning_until, \
            version, replaced_libraries (files that were replaced on disk since the start), since, read_at, \
            generation, \
            fallback (why the files are not in force), digest (of the policy in force: pinproxy.yaml and all pin \
            files), policy (the signed bundle: url, version, digest, note, expires, denial, answered, failures, \
            failure, waiting), telemetry (the collector: url, and signals, a list with signal, answered, sent, \
            dropped, failures, failure), admin, client_limit, tasks, requests, refused, last_hour \
            (counts: requests, refused, \
            pins_missed, pins_reported, and pin_failures, a list with entry, missed, reported), \
            kept_bodies and kept_bodies_limit (in bytes), bodies_not_kept, cache (hit, miss, revalidated, stale, \
            saved_bytes, hit_ratio), recent (what went wrong lately; \
            pin_failure is true where pins failed, group is equal for events that differ only in time and client), \
            incidents (open ones; a list with id, host, port, kind, entry, cause, first, last, refused, reported, \
            addresses), open_incidents, \
            expiring, insecure, warnings, silent_workers, hits, requests_by_minute, refusals_by_minute, \
            network_changes; \
            entries, a list with entry, accepted, misses, last_miss, configured and pins, a list with pin, \
            matches, first, last, configured; times in Unix seconds.

            Exits 0 if a proxy is running, else 1.

            Examples:
              pinproxy status
              pinproxy status --watch
              pinproxy status --state-directory /var/lib/pinproxy --json
            """)

    @OptionGroup var options: ConfigurationOptions
    @Flag(help: "Print JSON.") var json = false
    @Flag(help: "Show it again every second, until interrupted.") var watch = false

    func validate() throws {
        if json && watch { throw ValidationError("--watch is for people, --json for programs: use one of them") }
    }

    func run() throws {
        let files = try options.stateFiles()
        var report = try Self.report(files)
        Standard.output((watch ? Self.screen : "") + (json ? JSONText.of(report) : report.text))
        while watch, report.running {
            sleep(1)
            report = try Self.report(files)
            Standard.output(Self.screen + report.text)
        }
        if !report.running { throw CommandFailure(code: 1) }
    }

    /// The text before each repeated report.
    private static var screen: String { Terminal.isInteractive ? Terminal.cleared : "" }

    private static func report(_ files: StateFiles) throws -> StatusReport {
        guard let proxy = RunningProxy.find(files) else { return try left(by: nil, files) }
        do {
            var report: StatusReport = try proxy.ask(.get, "/status")
            report.changedFiles = (try? proxy.ask(.get, FilesReport.target, as: FilesReport.self))?.changed
            return report
        } catch let failure as CommandFailure {
            // Without access to the proxy, what it has left is shown.
            if let message = failure.message { Standard.error("pinproxy: \(message)") }
            return try left(by: proxy, files)
        }
    }

    private static func left(by proxy: RunningProxy?, _ files: StateFiles) throws -> StatusReport {
        do throws(StateFileProblem) {
            let history = try StateFile<PinHistory>(PinHistory.fileName, in: files.directory).read()
            return StatusReport(process: proxy?.process, directory: files.directory, history: history ?? PinHistory())
        } catch {
            throw CommandFailure("the counts of the pins can't be read: \(error)")
        }
    }
}

extension StatusReport {
    var text: String {
        let now = UnixTime(Date().timeIntervalSince1970)
        var lines = [
            process.map { "running: process \($0), state directory \(stateDirectory)" }
                ?? "not running: no proxy is using the state directory \(stateDirectory)"
        ]
        if let since, let version {
            lines.append(
                "up since \(Self.time(since)) (\(TimeDistance(from: since, to: now).span)), version \(version)")
        }
        if let replacedLibraries, !replacedLibraries.isEmpty {
            lines.append(
                """
                restart it: replaced on disk since the start: \
                \(replacedLibraries.map(\.printable).joined(separator: ", "))
                """
            )
        }
        if let configuration {
            lines.append("configuration: \(configuration)" + (readAt.map { ", read \(Self.time($0))" } ?? ""))
        }
        if let changedFiles, !changedFiles.isEmpty {
            let since = readAt.map { " since \(Self.time($0))" } ?? ""
            lines.append(
                """
                WARNING: files changed\(since): \(changedFiles.map(\.printable).joined(separator: ", ")): run pinproxy \
                reload
                """
            )
        }
        if let fallback { lines.append("WARNING: \(fallback.printable)") }
        if let policy { lines += Self.lines(of: policy, at: now) }
        if let telemetry { lines += Self.lines(of: telemetry, at: now) }
        if let listen, let clients {
            lines.append("listening on \(listen.joined(separator: ", ")), \(Count(clients, "client"))")
        }
        if let admin, !admin.isEmpty { lines.append("admin port: \(admin.joined(separator: ", "))") }
        if let tasks, let requests, let refused {
            lines.append("requests: \(requests) since the start, \(refused) of them refused; \(tasks) in flight")
        }
        if let lastHour { lines += Self.lines(of: lastHour) }
        if let keptBodies, let keptBodiesLimit, let bodiesNotKept, keptBodies + bodiesNotKept > 0 {
            let (kept, limit) = (Quantity.text(bytes: keptBodies), Quantity.text(bytes: keptBodiesLimit))
            lines.append("bodies: \(kept) of \(limit) kept, \(bodiesNotKept) not kept since the start")
        }
        if let ratio = cache?.hitRatio, let saved = cache?.savedBytes {
            lines.append(
                "cache: \(CacheText.percent(ratio)) of requests from the cache, \(CacheText.bytes(saved)) saved")
        }
        for worker in silentWorkers ?? [] { lines.append("\(worker) does not answer: its counts are not up to date") }
        for target in reachability ?? [] {
            lines.append("\(target.target == "any" ? "network" : target.target): \(target.text)")
        }
        if let lastReload {
            let remark = lastReload == "refused" ? "; pinproxy check says why" : ""
            lines.append("last reload: \(lastReload)\(remark)")
        }
        if let learningUntil {
            lines.append(
                "learning until \(Date(timeIntervalSince1970: TimeInterval(learningUntil)).formatted(.iso8601))")
        }
        for setting in insecure ?? [] { lines.append("insecure: \(setting.printable)") }
        lines += Self.list(expiring ?? [], atMost: Self.shown) { ending in
            let name = [ending.what, ending.name, ending.entry.map { "of \($0)" }].compactMap { $0 }.joined(
                separator: " ")
            return
                """
                \(ending.date < now ? "ended" : "ends") \(CalendarDate(ending.date)): \(name.printable) \
                (\(ending.location))
                """
        }
        lines += Self.list(incidents ?? [], atMost: Self.shown) { incident in
            let count = "\(Count(incident.refused, "connection")) refused"
            let reported = incident.reported > 0 ? ", \(incident.reported) only reported" : ""
            return
                """
                incident \(incident.id.prefix(12)): \(incident.host.printable): \(incident.cause.printable) \
                (\(count)\(reported), the last \(Self.time(incident.last)); pinproxy incidents show \
                \(incident.id.prefix(12)))
                """
        }
        // Pins first: among many refusals they would not be seen.
        for isPinFailure in [true, false] {
            lines += Self.list((recent ?? []).filter { $0.isPinFailure == isPinFailure }.grouped, atMost: Self.shown) {
                group in
                let event = group.latest
                let host = [event.method, event.host].filter { !$0.isEmpty }.joined(separator: " ")
                let count = group.count > 1 ? " (\(group.count) times since \(Self.time(group.first / 1000)))" : ""
                return
                    """
                    \(event.kind.rawValue) \(Self.time(event.time / 1000))\(count): \(host.printable): \
                    \(event.cause.printable)
                    """
            }
        }
        if entries.isEmpty { lines.append(running ? "no counts yet" : "no counts") }
        for entry in entries {
            let miss = entry.lastMiss.map { ", the last \(CalendarDate($0))" } ?? ""
            lines.append(
                "\(entry.entry): \(Count(entry.accepted, "connection")) met a pin, \(entry.misses) missed\(miss)"
                    + Self.remark(entry.configured))
            if let rollout = entry.rollout { lines.append("  \(rollout.printable)") }
            lines += entry.pins.map { pin in
                let dates =
                    if let first = pin.first, let last = pin.last {
                        " from \(CalendarDate(first)) to \(CalendarDate(last))"
                    } else { "" }
                return
                    """
                      \(pin.pin): \
                    \(Count(pin.matches, "match", plural: "matches"))\(dates)\(Self.remark(pin.configured))
                    """
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func lines(of telemetry: TelemetryStatus, at now: UnixTime) -> [String] {
        let url = telemetry.url.printable
        return telemetry.signals.flatMap { signal in
            let name = signal.signal
            let lost = signal.dropped > 0 ? ", \(signal.dropped) dropped" : ""
            let taken =
                signal.answered.map { "\(name) taken \(TimeDistance(from: $0, to: now).span) ago" }
                ?? "no \(name) taken yet"
            let failure = signal.failure.map { "WARNING: the collector doesn't take \(name): \($0.printable)" }
            return ["collector: \(url), \(taken)\(lost)"] + (failure.map { [$0] } ?? [])
        }
    }

    private static func lines(of policy: PolicyStatus, at now: UnixTime) -> [String] {
        let answered = policy.answered.map { ", the server answered \(TimeDistance(from: $0, to: now).span) ago" } ?? ""
        var lines = [
            policy.version.map { version in
                let note = policy.note.map { " (\($0.printable))" } ?? ""
                return "policy: bundle version \(version)\(note) from \(policy.url.printable)\(answered)"
            } ?? "policy: no bundle is in force from \(policy.url.printable)\(answered)"
        ]
        if let denial = policy.denial { lines.append("WARNING: every host is denied: \(denial.printable)") }
        if let expires = policy.expires, expires <= now {
            lines.append("WARNING: the bundle expired at \(time(expires)), and stays in force")
        }
        if let failure = policy.failure { lines.append("WARNING: the policy isn't up to date: \(failure.printable)") }
        if let waiting = policy.waiting {
            lines.append("policy: version \(waiting) is for other machines first")
        }
        return lines
    }

    private static func lines(of hour: LastHour) -> [String] {
        guard hour.refused > 0 || !hour.pinFailures.isEmpty else { return [] }
        let failures = list(hour.pinFailures, atMost: shown) { failure in
            let reported = failure.reported > 0 ? ", \(failure.reported) reported and let through" : ""
            return
                """
                pins failed in the last hour: \(failure.entry.printable): \
                \(Count(Int(clamping: failure.missed), "connection")) refused\(reported)
                """
        }
        return ["in the last hour: \(hour.requests) requests, \(hour.refused) of them refused"] + failures
    }

    /// Most lines of each list in text; --json has all.
    private static let shown = 10

    private static func list<Element>(_ all: [Element], atMost limit: Int, _ line: (Element) -> String) -> [String] {
        all.prefix(limit).map(line) + (all.count > limit ? ["  and \(all.count - limit) more (--json shows them)"] : [])
    }

    private static func time(_ unix: UnixTime) -> String {
        Date(timeIntervalSince1970: TimeInterval(unix)).formatted(.iso8601)
    }

    private static func remark(_ isConfigured: Bool) -> String { isConfigured ? "" : " (no longer configured)" }
}
