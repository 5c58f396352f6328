import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyLocalPeers
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS

/// Sends pin reports, writes counts of pins and rules, and warns of expiry, on the daemon's main loop.
final class PinUpkeep {
    private static let minute: UInt64 = 60_000_000_000
    private static let day: UInt64 = 24 * 60 * minute

    let watch: PinWatch
    let rules: RuleLedger
    let writer: StateWriter
    private let enforced: EnforcedLedger
    private let sawEnough: () -> Void
    private let loop: EventLoop
    private let logger: Logger
    private let unixTime: @Sendable () -> UnixTime
    private let delivery: ReportDelivery
    private var snapshot: Snapshot
    private var authorities: AuthoritySet
    /// Lists and own certificates that were warned of within a day.
    private var warned: Set<String> = []
    private let lists: FileWatch
    private var minutely: RepeatingTimer?
    private var daily: RepeatingTimer?

    /// - Parameters:
    ///   - listsChanged: called on the loop after a file of `crl_files` was replaced.
    ///   - sawEnough: called on the loop when the `enforce_after` of an entry may hold.
    init(
        loop: EventLoop, configuration: ActiveConfiguration, listeners: OwnListeners, logger: Logger,
        unixTime: @escaping @Sendable () -> UnixTime, listsChanged: @escaping () -> Void,
        sawEnough: @escaping () -> Void
    ) throws {
        self.loop = loop
        self.logger = logger
        self.unixTime = unixTime
        snapshot = configuration.snapshot
        authorities = configuration.leaves.authorities
        lists = FileWatch(loop: loop, changed: listsChanged)
        delivery = try ReportDelivery(
            loop: loop, upstream: configuration.upstream, timeouts: snapshot.timeouts, listeners: listeners,
            logger: logger, unixTime: unixTime,
            refusal: ProxyError.ofService)
        rules = RuleLedger(directory: snapshot.stateDirectory, logger: logger)
        writer = try StateWriter(directory: snapshot.stateDirectory, logger: logger)
        enforced = EnforcedLedger(directory: snapshot.stateDirectory, writer: writer, logger: logger)
        self.sawEnough = sawEnough
        let told = LoopBound(sawEnough, on: loop)
        watch = PinWatch(
            ledger: PinLedger(directory: snapshot.stateDirectory, logger: logger) { told.post { $0() } },
            chains: ChainRecorder(directory: snapshot.stateDirectory, logger: logger),
            incidents: IncidentLedger(directory: snapshot.stateDirectory, logger: logger),
            reporter: PinReporter(delivery, on: loop, logger: logger))
    }

    func start() {
        // Days of the monotonic clock: setting the wall clock doesn't skip or repeat one.
        minutely = RepeatingTimer(loop: loop, owner: self, everyNanoseconds: Self.minute) { $0.minutePassed() }
        lists.watch(snapshot.revocationListFiles)
        daily = RepeatingTimer(loop: loop, owner: self, everyNanoseconds: Self.day) { $0.review() }
        review()
        watch.chains.start(at: unixTime())
    }

    private func minutePassed() {
        watch.chains.review(at: unixTime())
        writer.later(saving(at: unixTime()))
        lists.look()
        // Tries again to record what could not be written before.
        sawEnough()
        // A list may live for hours only, and expiry of own certificates is logged at once.
        warnOfLists(at: unixTime())
        warnOfOwn(at: unixTime())
    }

    func obey(_ order: LearnOrder) -> Result<LearnReport, StateFileProblem> {
        let (chains, now) = (watch.chains, unixTime())
        return writer.now { chains.obey(order, at: now) } ?? .failure(writer.problem)
    }

    /// Writes down which entries have seen enough (`enforce_after`).
    /// - Returns: those that were written down, with their counts.
    func writeReady() -> [(entry: HostEntry, record: PinHistory.EntryRecord)] {
        let ready = watch.ledger.ready(in: snapshot)
        return !ready.isEmpty && enforced.add(ready.map(\.entry), at: unixTime()) ? ready : []
    }

    var enforcedEntries: EnforcedEntries { enforced.entries }
    var learnsUntil: UnixTime? { watch.chains.learnsUntil(at: unixTime()) }
    var connector: UpstreamConnector { delivery.connector }
    var pinHistory: PinHistory { watch.ledger.history.value }
    var incidents: IncidentHistory { watch.incidents.incidents }
    var matchedChains: MatchedChains { watch.incidents.matched }

    /// - Parameter whom: who acknowledged it, in words.
    func acknowledge(_ id: String, by whom: String) {
        let now = unixTime()
        watch.incidents.acknowledge(id, by: whom, at: now)
        writer.later { [watch] in watch.incidents.save(at: now) }
    }

    func replace(with fresh: ActiveConfiguration) {
        snapshot = fresh.snapshot
        authorities = fresh.leaves.authorities
        delivery.replace(with: fresh.upstream, fresh.snapshot.timeouts)
        lists.watch(snapshot.revocationListFiles)
        review()
    }

    func reloadResolver() { delivery.reloadResolver() }

    /// Waits for a moment, so that what was counted before can be read.
    func save() { _ = writer.now(saving(at: unixTime())) }

    private func saving(at now: UnixTime) -> @Sendable () -> Void {
        { [watch, rules, saving = enforced.saving] in
            watch.ledger.save()
            saving()
            watch.chains.save()
            watch.incidents.save(at: now)
            rules.save(at: now)
        }
    }

    func stop() {
        minutely = nil
        daily = nil
        lists.stop()
        delivery.stop()
        save()
    }

    private func review() {
        let now = unixTime()
        // Without its entries, a denial says nothing of them.
        if snapshot.denial == nil {
            watch.ledger.settle(snapshot, at: now)
            watch.ledger.beginAnew(enforced.settle(snapshot))
        }
        rules.settle(snapshot, at: now)
        warnOfExpiry(at: now)
        warnOfLibraries()
    }

    private func warnOfLibraries() {
        let replaced = MappedFiles.replaced()
        guard !replaced.isEmpty else { return }
        logger.warning(
            "library.replaced",
            metadata: [
                "libraries": "\(replaced.joined(separator: ", "))",
                "effect":
                    """
                the old code runs until the proxy is restarted (systemctl restart pinproxy, which interrupts \
                nothing)
                """,
            ])
    }

    private static let warnedOf = 50

    private func warnOfExpiry(at now: UnixTime) {
        warned = []
        warnOfLists(at: now)
        warnOfOwn(at: now)
        warnOfBundle(at: now)
        // The findings that belong to an entry.
        let findings = ExpiryWatch.findings(in: snapshot, at: now).filter {
            switch $0.subject {
            case .entry, .pin, .clientCertificate: true
            default: false
            }
        }
        for finding in findings.prefix(Self.warnedOf) {
            var fields: Logger.Metadata = [
                "entry": "\(finding.entry ?? "")", "location": "\(finding.location)",
                "what": "\(finding.subject.rawValue)",
                "date": "\(CalendarDate(finding.date))", "days_left": .stringConvertible(finding.daysLeft),
            ]
            if let name = finding.name { fields[finding.subject == .pin ? "pin" : "subject"] = "\(name)" }
            logger.warning("pin.expiring", metadata: fields)
        }
        if findings.count > Self.warnedOf {
            logger.warning("pin.expiring", metadata: ["cause": "and \(findings.count - Self.warnedOf) more"])
        }
    }

    /// Warns once a day. An expired bundle has its own event.
    private func warnOfBundle(at now: UnixTime) {
        for finding in ExpiryWatch.bundle(in: snapshot, at: now) where finding.date > now {
            logger.warning(
                "policy.expiring",
                metadata: [
                    "version": .stringConvertible(snapshot.bundle?.version ?? 0), "what": "\(finding.subject.rawValue)",
                    "date": "\(CalendarDate(finding.date))", "days_left": .stringConvertible(finding.daysLeft),
                    "cause": "\(finding.message(at: now))",
                ])
        }
    }

    /// Once a day for each expiring certificate, and once for an expired one.
    private func warnOfOwn(at now: UnixTime) {
        for finding in ExpiryWatch.own(in: snapshot, authorities: authorities, at: now) {
            let isPast = finding.date < now
            guard warned.insert("\(finding.subject)\n\(isPast)").inserted else { continue }
            let fields: Logger.Metadata = [
                "what": "\(finding.subject.rawValue)", "subject": "\(finding.name ?? "")",
                "location": "\(finding.location)",
                "date": "\(CalendarDate(finding.date))", "days_left": .stringConvertible(finding.daysLeft),
                "cause": "\(finding.message(at: now))",
            ]
            if isPast {
                logger.error(
                    "certificate.expired", metadata: fields.merging(["effect": "\(effect(of: finding.subject))"]) { $1 }
                )
            } else {
                logger.warning("certificate.expiring", metadata: fields)
            }
        }
    }

    private func effect(of subject: ExpirySubject) -> String {
        switch subject {
        case .authority where authorities.signer(at: unixTime()) !== authorities.current:
            "the next authority signs in its place; make it the current one: pinproxy ca rotate --activate"
        case .authority: "hosts that are intercepted get 503; tunnels and plain HTTP are served"
        case .nextAuthority: "it can't replace the current one"
        case .adminCertificate: "clients of the admin port refuse it"
        default: "clients of the proxy port refuse it"
        }
    }

    /// Once a day for each expiring list, and once for an expired one.
    private func warnOfLists(at now: UnixTime) {
        for finding in ExpiryWatch.revocationLists(in: snapshot, at: now).prefix(Self.warnedOf) {
            let (file, issuer) = (finding.name ?? "", finding.issuer ?? "")
            guard warned.insert("\(file)\n\(issuer)\n\(finding.date <= now)").inserted else { continue }
            logger.warning(
                "crl.expiring",
                metadata: [
                    "file": "\(file)", "issuer": "\(issuer)", "location": "\(finding.location)",
                    "date": "\(CalendarDate(finding.date))", "days_left": .stringConvertible(finding.daysLeft),
                    "cause": "\(finding.message(at: now))",
                ])
        }
    }
}

extension ProxyError {
    /// Why a request that the proxy makes for itself is refused.
    static func ofService(_ failure: ExchangeFailure, _ destination: Destination) -> TaskRecord.Refusal {
        let record = TaskRecord()
        return exchange(failure, destination, of: record).refusal(for: Requester(record))
    }
}

extension Snapshot {
    fileprivate var revocationListFiles: Set<String> { Set(revocationLists.flatMap(\.lists.paths)) }
}
