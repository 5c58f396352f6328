import FoundationEssentials
import Glibc
import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyDecoding
import PinproxyEventLoop
import PinproxyLocalPeers
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// The daemon's `/status`, `/metrics` and `/events`.
extension ProxyDaemon {
    /// - Parameter completion: called once on the loop, after the workers' answers.
    func status(_ upkeep: PinUpkeep, _ completion: @escaping (StatusReport) -> Void) {
        guard let collector else { return completion(status(upkeep, nil)) }
        collector.collect { [weak self] measurement in
            guard let self else { return }
            completion(status(upkeep, measurement))
        }
    }

    private func status(_ upkeep: PinUpkeep, _ measurement: ProxyMeasurement?) -> StatusReport {
        var rollouts: [String: PinRollout] = [:]
        for entry in snapshot.hosts.values where entry.policy.rollout != nil {
            rollouts[entry.pattern] = entry.policy.rollout
        }
        var report = StatusReport(
            process: getpid(), directory: snapshot.stateDirectory, history: upkeep.pinHistory, rollouts: rollouts,
            at: now)
        report.version = Self.version
        report.replacedLibraries = MappedFiles.replaced()
        report.since = startedAt
        report.readAt = readAt
        report.generation = generation
        report.configuration = configuration
        report.listen = addresses
        report.admin = admin.map(\.places) ?? []
        report.clients = clientCount
        report.clientLimit = snapshot.limits.clients
        report.keptBodies = budget.inUse
        report.keptBodiesLimit = budget.limit
        report.cache = CacheCounts(cache.counts)
        report.bodiesNotKept = budget.refused.values.reduce(0, +)
        report.reachability = network?.targets
        report.networkChanges = network?.changes
        report.lastReload = lastReload
        report.learningUntil = upkeep.learnsUntil
        let open = upkeep.incidents.open
        report.incidents = open.prefix(OpenIncident.limit).map(OpenIncident.init)
        report.openIncidents = open.count
        report.fallback = fallback?.text
        report.digest = snapshot.digest.hex
        report.policy = PolicyStatus(snapshot, policy?.figures)
        report.warnings = (fallback.map { [$0.text] } ?? []) + snapshot.warnings(at: now).map(\.description)
        report.telemetry = telemetry?.status
        report.insecure = insecure
        report.expiring = expiring.prefix(StatusReport.expiringLimit).map { finding in
            StatusReport.Ending(
                what: finding.subject.rawValue, entry: finding.entry, name: finding.name, location: finding.location,
                date: finding.date, daysLeft: finding.daysLeft)
        }
        guard let measurement else { return report }
        let counters = measurement.counters
        report.tasks = measurement.sum(\.open.tasks)
        report.requests = counters.requests
        report.refused = counters.refused
        report.lastHour = hits.lastHour(counters, slots?.names ?? [])
        report.recent = measurement.events.latest(StatusReport.recentLimit)
        report.silentWorkers = measurement.silent.sorted().map { "worker \($0 + 1)" }
        report.hits = hits.hits(slots?.names ?? [])
        report.requestsByMinute = hits.exchangesByMinute
        report.refusalsByMinute = hits.refusalsByMinute
        return report
    }

    /// - Parameter completion: called once on the loop; with nil before there are workers.
    func metrics(_ context: ProxyContext, _ completion: @escaping (MetricsReport?) -> Void) {
        guard let collector else { return completion(nil) }
        collector.collect { [weak self] measurement in
            guard let self else { return }
            var daemon = MetricsReport.Daemon()
            daemon.version = Self.version
            daemon.replacedLibraries = MappedFiles.replaced().count
            daemon.clients = clientCount
            daemon.clientLimit = snapshot.limits.clients
            daemon.entryCount = snapshot.hosts.values.count
            daemon.reportOnlyCount = snapshot.hosts.values.count {
                $0.policy.mode != .none && $0.policy.enforcement == .report
            }
            daemon.generation = generation
            daemon.readAt = readAt
            daemon.reloadsAccepted = reloads.accepted
            daemon.reloadsRefused = reloads.refused
            daemon.lastReloadFailed = lastReload == "refused"
            daemon.isFallback = fallback != nil
            daemon.digest = snapshot.digest.hex
            daemon.policy = PolicyStatus(snapshot, policy?.figures)
            daemon.telemetry = telemetry?.status
            daemon.insecureSwitches = insecure.count
            daemon.warnings = snapshot.warnings(at: now).count
            let issued = leaves?.statistics ?? LeafCache.Statistics()
            daemon.leavesIssued = issued.issued
            daemon.leavesEvicted = issued.evicted
            daemon.leavesHeld = issued.entries
            daemon.decoders = decoders?.counts
            daemon.budget = budget
            daemon.cache = cache
            daemon.pressure = pressure
            daemon.reachability = network?.targets ?? []
            daemon.expiring = expiring.filter { !$0.subject.isOwn }
            daemon.ownCertificates = OwnCertificate.all(of: snapshot, authorities: leaves?.authorities)
            daemon.entryNames = context.slots.names
            daemon.openIncidents = upkeep?.incidents.open ?? []
            daemon.pinnedSlots = context.slots.pinned
            let now = WallClock.milliseconds() / 1000
            daemon.deadPins = (upkeep?.pinHistory ?? PinHistory()).entries.compactMap { name, record in
                DeadPins(of: name, record, at: now)
            }
            completion(MetricsReport(daemon: daemon, measurement: measurement))
        }
    }

    func fill(_ tick: inout LiveFeed.Tick, _ counters: WorkerCounters) {
        tick.lastHour = hits.lastHour(counters, slots?.names ?? [])
        tick.clients = clientCount
        let incidents = upkeep?.incidents ?? IncidentHistory()
        tick.incidents = incidents.open.prefix(OpenIncident.limit).map(OpenIncident.init)
        tick.acknowledged = incidents.incidents.values.filter { !$0.isOpen }.map { "\($0.host):\($0.port)" }.sorted()
        tick.cache = CacheCounts(cache.counts)
        tick.reachability = network?.targets ?? []
        tick.generation = generation
        tick.lastReload = lastReload
    }

    private var clientCount: Int { workers.reduce(0) { $0 + $1.load.count } }

    private var insecure: [String] {
        snapshot.warnings(at: now).filter { $0.message.hasPrefix("insecure:") }.map {
            "\($0.place): \($0.message.dropFirst(10))"
        }
    }

    private var expiring: [ExpiryWatch.Finding] {
        ExpiryWatch.findings(
            in: snapshot, authorities: leaves?.authorities, at: now)
    }

    private var now: UnixTime { WallClock.milliseconds() / 1000 }

    /// The file's absolute path.
    var configuration: String { URL(fileURLWithPath: snapshot.files.first ?? "").path }
}

extension DecoderEvents {
    init(for logger: Logger) {
        self.init()
        failed = { incident in
            var fields: Logger.Metadata = [
                "cause": "\(incident.failure.cause)", "pid": .stringConvertible(incident.process),
                "effect": "the body is refused, and another process takes the next",
            ]
            if let host = incident.host {
                fields["host"] = "\(host)"
            } else {
                fields["effect"] = "nothing: it had no body"
            }
            if !incident.output.isEmpty { fields["output"] = "\(incident.output)" }
            logger.warning("decoder.failed", metadata: fields)
        }
        unavailable = { cause in
            let effect = "exchanges with rules that read bodies get 503 until one can be started"
            logger.error("decoder.unavailable", metadata: ["cause": "\(cause)", "effect": "\(effect)"])
        }
        availableAgain = { logger.notice("decoder.unavailable", metadata: ["effect": "over"]) }
    }
}
