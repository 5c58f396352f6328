// Proxy: the rooms put together into the daemon that every program on the machine talks to.

package import Configuration
import EventLoop
import Glibc
package import Logging
import Security
import Session
import TLS
import Transport

/// The running proxy: authority, workers, listeners, and what signals ask of it.
///
/// SIGHUP reads the configuration again. SIGTERM and SIGINT let what is under way finish, and a second one of these
/// ends at once. All else is asked for over the control socket.
package final class ProxyDaemon {
    private let load: () throws(ConfigurationProblems) -> Snapshot
    let logger: Logger
    private let output: LogOutput
    private let notices: DaemonNotices
    private let inherited: [InheritedSocket]
    private let listening: ProxyListening

    let loop: EventLoop
    private(set) var snapshot: Snapshot
    private var authority: LocalAuthority?
    private(set) var workers: [WorkerThread] = []
    private var acceptor: LoopThread<Acceptor>?
    private let listeners = OwnListeners()
    private var heartbeat: Heartbeat?
    private var upkeep: PinUpkeep?
    private var control: ControlSocket?
    private(set) var admin: AdminPort?
    private var resources: ControlResources?
    private var runs: RunSocket?
    private var starter: StarterWatch?
    /// Who may use the proxy, as the configuration in force has it.
    private(set) var users: UserVerifier?
    var collector: MetricsCollector?
    var slots: EntrySlots?
    var feed: LiveFeed?
    let hits = HitHistory()
    var countingHits: RepeatingTimer?
    var reloads = (accepted: 0, refused: 0)
    let startedAt = WallClock.milliseconds() / 1000
    package static let version = "0.1.0"
    /// Where clients are accepted.
    var addresses: [String] { listening.sockets.map(\.place.description) }
    /// The same without those where a load balancer speaks for its clients.
    var directAddresses: [SocketAddress] { listening.directAddresses(snapshot.proxy) }
    /// How many configurations have been in force, and when the last was read.
    private(set) var generation = 1
    private(set) var readAt = WallClock.milliseconds() / 1000
    /// `accepted` or `refused`; nil: there was none.
    var lastReload: String?
    private(set) var network: NetworkWatch?
    private var workersUnderWay = 0
    private(set) var isStopping = false
    var isAccepting: Bool { acceptor != nil }
    private var drainTimer: Timer?
    private let freeMemory = FreeMemory()
    private var afterReload: Timer?
    /// How long after a reload what the old configuration took is given back: most of its users have gone by then.
    private static let afterReloadNanoseconds: UInt64 = 10_000_000_000

    /// - Parameters:
    ///   - snapshot: the configuration to begin with.
    ///   - inherited: listening sockets that a supervisor hands over. Those that no `proxy.listen` asks for are closed.
    ///   - load: reads it again.
    package init(
        snapshot: Snapshot, logger: Logger, output: LogOutput, notices: DaemonNotices, inherited: [InheritedSocket] = [],
        load: @escaping () throws(ConfigurationProblems) -> Snapshot
    ) throws {
        self.snapshot = snapshot
        self.logger = logger
        self.output = output
        self.notices = notices
        self.inherited = inherited
        self.load = load
        listening = ProxyListening(inherited: inherited, notices: notices, logger: logger)
        loop = try EventLoop()
    }

    /// Serves until it is told to stop. To be called once, on the main thread.
    package func run() throws {
        let signals = ControlSignals.block()
        try start()
        let (daemon, handle) = (LoopBound(self, on: loop), loop.handle)
        try signals.watch { signal in
            handle.post { loop in
                if signal == SIGHUP { _ = daemon.value(on: loop).reload() } else { daemon.value(on: loop).stop() }
            }
        }
        loop.run()
        logger.notice("proxy.stop")
    }

    private func start() throws {
        logger.notice("proxy.start", metadata: ["config": "\(snapshot.files.first ?? "")"])
        let unixTime: @Sendable () -> Int64 = { WallClock.milliseconds() / 1000 }
        let files = AuthorityFiles(
            certificate: snapshot.authority.certificatePath, key: snapshot.authority.privateKeyPath)
        let (authority, provenance) = try files.loadOrCreate(at: unixTime())
        say(provenance, files)
        self.authority = authority
        Descriptor.raiseLimit()
        warn(of: snapshot)
        let configuration = try ActiveConfiguration(snapshot, authority: authority, logger: logger)
        let upkeep = try PinUpkeep(
            loop: loop, configuration: configuration, listeners: listeners, logger: logger, unixTime: unixTime,
            listsChanged: { [unowned self] in reloadRevocationLists() })
        let workerCount = snapshot.proxy.workers ?? Processors.available
        let context = try ProxyContext(
            authority: authority, leafLifetime: snapshot.authority.leafLifetime, pins: upkeep.watch, rules: upkeep.rules,
            listeners: listeners, logger: logger, logOutput: output, freeMemory: freeMemory,
            idleUpstreams: UpstreamPool.capacity(descriptors: Descriptor.limit, pools: workerCount),
            sessionCount: workerCount + 1, unixTime: unixTime)
        try listening.open(as: snapshot)
        if snapshot.admin.takesInherited, ListeningSocket.named(for: .admin, among: inherited).isEmpty {
            throw MissingSocket(port: .admin, file: snapshot.files.first ?? "")
        }
        let session = LoopSession(
            loop: loop, slabs: SlabPool(), pool: UpstreamPool(), connector: upkeep.connector,
            index: context.sessionCount - 1, of: context.sessionCount)
        let admin = AdminPort(loop: loop, session: session, logger: logger) { [unowned self] in
            self.resources?.answer($0, $1)
        } feed: { [unowned self] in
            feed
        }
        admin.replace(with: snapshot.admin, try admin.open(snapshot.admin, namedIn: snapshot.files.first ?? "", inherited: inherited))
        self.admin = admin
        listening.settle(snapshot, isHeld: admin.holds)
        let vacancy = Vacancy()
        for number in 0..<workerCount {
            workers.append(
                try .start(number: number, context: context, configuration: configuration, vacancy: vacancy))
        }
        upkeep.start()
        self.upkeep = upkeep
        let resources = controlResources(context, upkeep)
        self.resources = resources
        control = openControl(resources, session)
        users = configuration.users
        runs = openRuns(context, session)
        listenersChanged()
        let network = try NetworkWatch(
            loop: loop, names: context.names, targets: snapshot.reachability, logger: logger
        ) { [unowned self] outlook, isAnother in
            for worker in workers { worker.perform { $0.replaceOutlook(outlook, isAnother: isAnother) } }
            if isAnother { runs?.forgetNames() }
        }
        network.start()
        self.network = network
        try accept(vacancy)
        startHeartbeat()
    }

    private func startHeartbeat() {
        var threads: [Heartbeat.Ask] = workers.map { worker in
            { answer in
                worker.perform { worker in
                    worker.tellLoad()
                    answer()
                }
            }
        }
        if let acceptor { threads.append { answer in acceptor.perform { _ in answer() } } }
        let heartbeat = Heartbeat(loop: loop, intervalNanoseconds: notices.aliveNanoseconds, threads: threads) {
            [unowned self] in notices.alive(summary)
        }
        self.heartbeat = heartbeat
        heartbeat.start()
    }

    private var summary: String {
        let clients = workers.reduce(0) { $0 + $1.load.count }
        let requests = workers.reduce(0) { $0 + $1.load.requests }
        let state = isStopping ? "Stopping" : "Listening on \(listening.description)"
        let network = network?.targets.first.map { "; network: \($0.status)" } ?? ""
        return "\(state); clients: \(clients); requests: \(requests)\(network)"
    }

    private func say(_ provenance: AuthorityFiles.Provenance, _ files: AuthorityFiles) {
        switch provenance {
        case .found: break
        case .created: logger.notice("authority.created", metadata: ["certificate": "\(files.certificate)"])
        case .completed:
            logger.warning(
                "authority.created",
                metadata: [
                    "certificate": "\(files.certificate)",
                    "cause": """
                        \(files.key) was there without its certificate, as a first start that was cut short leaves it; \
                        a new certificate was issued for that key, and clients have to trust it
                        """,
                ])
        }
    }

    /// What clients must not be led to.
    private func listenersChanged() { listeners.replace(with: listening.addresses + (admin?.addresses ?? [])) }

    private func follow(_ snapshot: Snapshot, adding added: [ListeningSocket]) {
        defer { listenersChanged() }
        guard !listening.needsRestart(snapshot.proxy.listen) else { return }
        let removed = listening.follow(snapshot, adding: added)
        let senders = snapshot.proxy.listen.senders
        acceptor?.perform { $0.replace(removed, with: added, senders: senders) }
    }

    private func accept(_ vacancy: Vacancy) throws {
        let maximum = snapshot.limits.clients
        let (sockets, workers, logger, senders) = (listening.sockets, workers, logger, snapshot.proxy.listen.senders)
        let acceptor = try LoopThread.start("acceptor", stackSize: 128 << 10) { loop in
            Acceptor(
                loop: loop, sockets: sockets, workers: workers, vacancy: vacancy, maximumClients: maximum,
                senders: senders, logger: logger)
        }
        vacancy.notify { acceptor.perform { $0.roomAgain() } }
        acceptor.perform { $0.start() }
        self.acceptor = acceptor
        logger.notice(
            "proxy.ready",
            metadata: [
                "listen": "\(listening.description)", "workers": "\(workers.count)", "pid": "\(getpid())",
            ].merging(adminField) { $1 })
        if let descriptor = notices.starter {
            starter = StarterWatch(loop: loop, descriptor: descriptor, listen: addresses) { [unowned self] in stopWhenUnused() }
        }
        notices.ready()
        freeMemory.giveBackAfterStart()
    }

    /// Where the admin port is, if there is one.
    private var adminField: Logger.Metadata {
        guard let places = admin?.places, !places.isEmpty else { return [:] }
        return ["admin": "\(places.joined(separator: ", "))"]
    }

    // MARK: Signals

    /// - Returns: what has become of it.
    func reload() -> ReloadReport {
        guard !isStopping, let authority else {
            return report(refused: "the proxy is stopping, and reads no configuration")
        }
        notices.reloading()
        defer { notices.ready() }
        // Whoever asks for a reload may want to read what was counted until then.
        upkeep?.save()
        do throws(ConfigurationProblems) {
            let fresh = try load()
            let configuration: ActiveConfiguration
            do {
                configuration = try ActiveConfiguration(fresh, authority: authority, logger: logger)
            } catch {
                let place = Place(file: fresh.files.first ?? "")
                throw ConfigurationProblems([Problem(.error, at: place, "can't be put into force: \(error)")])
            }
            let addedToAdmin = try admin?.open(fresh.admin, namedIn: fresh.files.first ?? "")
            let added: [ListeningSocket]
            do throws(ConfigurationProblems) {
                added = try listening.openAdded(by: fresh)
            } catch {
                addedToAdmin?.close()
                throw error
            }
            warnOfRestart(fresh)
            output.apply(fresh.log)
            putIntoForce(configuration)
            if let addedToAdmin { admin?.replace(with: fresh.admin, addedToAdmin) }
            follow(fresh, adding: added)
            generation += 1
            readAt = WallClock.milliseconds() / 1000
            let clients = fresh.limits.clients
            acceptor?.perform { $0.limit(clients: clients) }
            logger.notice(
                "config.reload",
                metadata: [
                    "files": "\(fresh.files.joined(separator: ", "))",
                    "listen": "\(listening.description)",
                ].merging(adminField) { $1 })
            warn(of: fresh)
            afterReload = Timer(loop: loop, afterNanoseconds: Self.afterReloadNanoseconds) { [freeMemory] in
                freeMemory.giveBack()
            }
            return report(refused: nil)
        } catch {
            for problem in error.problems { logger.error("config.error", metadata: ["cause": "\(problem)"]) }
            return report(refused: error.description)
        }
    }

    private func putIntoForce(_ configuration: ActiveConfiguration) {
        snapshot = configuration.snapshot
        users = configuration.users
        upkeep?.replace(with: configuration)
        network?.follow(snapshot.reachability)
        for worker in workers { worker.perform { $0.replace(with: configuration) } }
    }

    /// Puts lists into force that somebody has fetched anew, and nothing else of the configuration. One that is broken
    /// changes nothing: the lists read before stay in force until they are stale.
    private func reloadRevocationLists() {
        guard !isStopping, let authority else { return }
        do {
            guard let fresh = try snapshot.withFreshRevocationLists() else { return }
            putIntoForce(try ActiveConfiguration(fresh, authority: authority, logger: logger))
            let files = Set(fresh.revocationLists.flatMap(\.lists.paths)).sorted()
            logger.notice("crl.reload", metadata: ["files": "\(files.joined(separator: ", "))"])
        } catch {
            logger.warning("crl.failed", metadata: ["cause": "\(error)", "effect": "the lists read before stay in force"])
        }
    }

    /// What is allowed, and should be known.
    private func warn(of snapshot: Snapshot) {
        for warning in snapshot.warnings { logger.warning("config.warning", metadata: ["cause": "\(warning)"]) }
        for warning in PeerSight.current.warnings(about: snapshot) { logger.warning("config.warning", metadata: ["cause": "\(warning)"]) }
        // A client with its upstream connection; behind TLS of the proxy's own also a socket pair. Some are the
        // process's own, each worker's, and for connections to origins that wait for their next use.
        let each = snapshot.proxy.tls == nil ? 2 : 4
        let own = 64 + 16 * (snapshot.proxy.workers ?? Processors.available)
        let (needed, have) = (snapshot.limits.clients * each + own, Descriptor.limit)
        guard needed > have else { return }
        let cause =
            "limits.clients is \(snapshot.limits.clients), which takes about \(needed) descriptors, and this process may "
            + "have \(have): raise LimitNOFILE in its unit (ulimit -n), or set limits.clients to at most "
            + "\(max(1, (have - own) / each))"
        logger.warning("config.warning", metadata: ["cause": "\(cause)"])
    }

    /// What can't be changed in a running proxy is said, not ignored.
    private func warnOfRestart(_ fresh: Snapshot) {
        var changed: [String] = []
        if fresh.proxy.workers != snapshot.proxy.workers { changed.append("proxy.workers") }
        if fresh.authority != snapshot.authority { changed.append("authority") }
        if listening.needsRestart(fresh.proxy.listen) { changed.append("proxy.listen (systemd)") }
        for key in changed {
            logger.warning("config.warning", metadata: ["cause": "\(key) has changed: it takes effect at the next start"])
        }
    }

    /// Whoever started the proxy for a run is gone. Others' runs go on.
    private func stopWhenUnused() {
        guard let runs, !runs.isUnused else { return endRuns() }
        starter?.tellKept()
        runs.unused = { [unowned self] in endRuns() }
    }

    /// No other run may begin with a proxy that ends: whoever wants one starts the next.
    private func endRuns() {
        guard !isStopping else { return }
        runs?.stop()
        stop()
    }

    func stop() {
        guard !isStopping else {
            logger.warning("proxy.stop", metadata: ["cause": "told to stop twice: ending at once"])
            return endAtOnce()
        }
        isStopping = true
        notices.stopping()
        workersUnderWay = workers.count
        let daemon = LoopBound(self, on: loop)
        let handle = loop.handle
        if let acceptor {
            // Whoever it has accepted must reach a worker before that is told to drain: later, they would be reset.
            acceptor.perform { acceptor in
                acceptor.stop()
                handle.post { loop in daemon.value(on: loop).drainWorkers() }
            }
        } else {
            drainWorkers()
        }
        drainTimer = Timer(loop: loop, afterNanoseconds: snapshot.timeouts.drain.nanoseconds) { [unowned self] in
            logger.warning("proxy.stop", metadata: ["cause": "timeouts.drain is over: cutting what is still under way"])
            endAtOnce()
        }
    }

    private func drainWorkers() {
        let daemon = LoopBound(self, on: loop)
        let handle = loop.handle
        for worker in workers {
            worker.perform { worker in
                worker.drain { handle.post { loop in daemon.value(on: loop).workerEnded() } }
            }
        }
    }

    private func endAtOnce() {
        for worker in workers { worker.perform { $0.stopClients() } }
    }

    private func workerEnded() {
        workersUnderWay -= 1
        guard workersUnderWay == 0 else { return }
        drainTimer = nil
        countingHits = nil
        control?.stop()
        admin?.stop()
        runs?.stop()
        upkeep?.stop()
        network?.stop()
        for worker in workers { worker.stop() }
        acceptor?.stop()
        loop.stop()
    }
}
