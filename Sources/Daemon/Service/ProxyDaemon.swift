// Daemon: the modules put together into the process that every program on the machine talks to: listening, workers,
// reload, memory, network, control socket, admin port, and the runs of pinproxy exec.

import Glibc
package import Logging
import PinproxyClients
package import PinproxyConfiguration
import PinproxyDecoding
import PinproxyEventLoop
package import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTransport

/// The running proxy. SIGHUP reloads. SIGTERM and SIGINT drain; a second one ends at once.
package final class ProxyDaemon {
    let load: () throws(ConfigurationProblems) -> Snapshot
    let logger: Logger
    let output: LogOutput
    var notices: DaemonNotices
    private let inherited: [InheritedSocket]
    let listening: ProxyListening
    /// Keeps the configuration in force; nil: it isn't kept.
    let kept: KeptConfiguration?
    let keptGeneration = KeptGeneration()
    /// Until a reload is accepted.
    var fallback: ConfigurationFallback?

    let loop: EventLoop
    var snapshot: Snapshot
    var configurationInForce: ActiveConfiguration?
    var leaves: LeafCache?
    var authorityFiles: AuthorityFiles?
    private(set) var workers: [WorkerThread] = []
    var acceptor: LoopThread<Acceptor>?
    let listeners = OwnListeners()
    private var heartbeat: Heartbeat?
    var upkeep: PinUpkeep?
    var policy: PolicyWatch?
    var telemetry: TelemetryWatch?
    /// Entries that the collector has by name.
    var namedEntries = NamedEntries()
    var control: ControlSocket?
    private(set) var admin: AdminPort?
    private(set) var decoders: ProcessExecutor?
    let budget: BodyBudget
    let cache: ResponseCache
    let pressure = MemoryPressure()
    private var budgetWatch: BudgetWatch?
    private var resources: ControlResources?
    var runs: RunSocket?
    var starter: ProcessWatch?
    var supervisor: ProcessWatch?
    var users: UserVerifier?
    var collector: MetricsCollector?
    var slots: EntrySlots?
    var feed: LiveFeed?
    var hits = HitHistory()
    var countingHits: RepeatingTimer?
    var reloads = (accepted: 0, refused: 0)
    let startedAt = WallClock.milliseconds() / 1000
    package static let version = "0.1.0"
    var addresses: [String] { listening.sockets.map(\.place.description) }
    /// Without those for load balancers.
    var directAddresses: [SocketAddress] { listening.directAddresses(snapshot.proxy) }
    /// Configurations that have been in force, and when the last was read.
    var generation = 1
    var readAt = WallClock.milliseconds() / 1000
    /// `accepted` or `refused`.
    var lastReload: String?
    private(set) var network: NetworkWatch?
    var runningWorkers = 0
    var isStopping = false
    var hasHandedOver = false
    var isAccepting: Bool { acceptor != nil }
    var drainTimer: Timer?
    let freeMemory: FreeMemory
    var afterReload: Timer?

    /// - Parameters:
    ///   - inherited: a supervisor's listening sockets. Those not in `proxy.listen` are closed.
    ///   - kept: stores each configuration in force; nil: none is stored.
    ///   - fallback: nil: the snapshot is what the files say.
    package init(
        snapshot: Snapshot, logger: Logger, output: LogOutput, notices: DaemonNotices,
        inherited: [InheritedSocket] = [],
        kept: KeptConfiguration? = nil, fallback: ConfigurationFallback? = nil,
        load: @escaping () throws(ConfigurationProblems) -> Snapshot
    ) throws {
        self.snapshot = snapshot
        budget = BodyBudget(limit: snapshot.limits.bodies)
        cache = ResponseCache(snapshot.cache)
        self.logger = logger
        self.output = output
        self.notices = notices
        self.inherited = inherited
        self.kept = kept
        self.fallback = fallback
        self.load = load
        listening = ProxyListening(inherited: inherited, notices: notices, logger: logger)
        loop = try EventLoop()
        freeMemory = try FreeMemory()
    }

    /// Serves until it is stopped. Called once, on the main thread.
    package func run() throws {
        // Before the proxy is ready: signals wait for the loop.
        let signals = ControlSignals.block()
        let daemon = LoopBound(self, on: loop)
        try signals.watch { signal in
            daemon.post { if signal == SIGHUP { _ = $0.reload() } else { $0.stop() } }
        }
        try start()
        loop.run()
        logger.notice("proxy.stop")
    }

    private func start() throws {
        logger.notice("proxy.start", metadata: ["config": "\(snapshot.files.first ?? "")"])
        // Later problems are reported once there are workers.
        output.telemetry.open(snapshot.telemetry?.sendsEvents == true)
        tellFallback()
        let unixTime: @Sendable () -> Int64 = { WallClock.milliseconds() / 1000 }
        let leaves = LeafCache(
            authorities: try loadAuthorities(at: unixTime()),
            lifetime: snapshot.authority.leafLifetime.components.seconds)
        self.leaves = leaves
        Descriptor.raiseLimit()
        warn(of: snapshot)
        let configuration = try ActiveConfiguration(snapshot, leaves: leaves, logger: logger)
        configurationInForce = configuration
        let upkeep = try PinUpkeep(
            loop: loop, configuration: configuration, listeners: listeners, logger: logger, unixTime: unixTime,
            listsChanged: { [weak self] in self?.reloadRevocationLists() },
            sawEnough: { [weak self] in self?.enforceReady() })
        let workerCount = snapshot.proxy.workers ?? Processors.available
        let decoders = try ProcessExecutor(events: .init(for: logger))
        self.decoders = decoders
        let context = try ProxyContext(
            pins: upkeep.watch, rules: upkeep.rules, listeners: listeners, logger: logger, logOutput: output,
            freeMemory: freeMemory,
            idleUpstreams: UpstreamPool.capacity(descriptors: Descriptor.limit, pools: workerCount),
            sessionCount: workerCount + 1, bodies: decoders, cache: cache, budget: budget,
            pressure: pressure, unixTime: unixTime)
        context.slots.reserve(for: snapshot.hosts.values)
        followCache()
        budgetWatch = BudgetWatch(budget, loop: loop, logger: logger)
        try listening.open(as: snapshot)
        if snapshot.admin.takesInherited, ListeningSocket.named(for: .admin, among: inherited).isEmpty {
            throw MissingSocket(port: .admin, file: snapshot.files.first ?? "")
        }
        let session = LoopSession(
            loop: loop, slabs: SlabPool(budget: budget), pool: UpstreamPool(), connector: upkeep.connector,
            index: context.sessionCount - 1, of: context.sessionCount)
        let admin = AdminPort(loop: loop, session: session, logger: logger) { [weak self] in
            self?.resources?.answer($0, $1)
        } feed: { [weak self] in
            self?.feed
        }
        admin.replace(
            with: snapshot.admin,
            try admin.open(snapshot.admin, namedIn: snapshot.files.first ?? "", inherited: inherited))
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
        ) { [weak self] outlook, isAnother in
            guard let self else { return }
            for worker in workers { worker.perform { $0.replaceOutlook(outlook, isAnother: isAnother) } }
            if isAnother { runs?.forgetNames() }
        } serversChanged: { [weak self] in
            guard let self else { return }
            for worker in workers { worker.perform { $0.reloadResolver() } }
            self.upkeep?.reloadResolver()
        }
        network.start()
        self.network = network
        try accept(vacancy)
        startHeartbeat()
        let services = LoopSession(
            loop: loop, slabs: SlabPool(budget: budget), pool: UpstreamPool(), connector: upkeep.connector)
        let policy = policyWatch(services)
        self.policy = policy
        policy.follow(snapshot)
        let telemetry = telemetryWatch(services, context)
        self.telemetry = telemetry
        telemetry.follow(snapshot)
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
        if let decoders { threads.append { decoders.ask($0) } }
        heartbeat = Heartbeat(loop: loop, intervalNanoseconds: notices.aliveNanoseconds, threads: threads) {
            [weak self] in
            guard let self else { return }
            notices.alive(summary)
        }
        heartbeat?.start()
    }

    private var summary: String {
        let clients = workers.reduce(0) { $0 + $1.load.count }
        let requests = workers.reduce(0) { $0 + $1.load.requests }
        let state = isStopping ? "Stopping" : "Listening on \(listening.description)"
        let network = network?.targets.first.map { "; network: \($0.status)" } ?? ""
        return "\(state); clients: \(clients); requests: \(requests)\(network)"
    }

    private func accept(_ vacancy: Vacancy) throws {
        let maximum = snapshot.limits.clients
        let sockets = listening.sockets + (openDoor().map { [$0] } ?? [])
        let (workers, logger, senders) = (workers, logger, snapshot.proxy.listen.senders)
        let (pressure, freeMemory, group) = (pressure, freeMemory, MemoryGroup())
        let acceptor = try LoopThread.start("acceptor", stackSize: 128 << 10) { loop in
            Acceptor(
                loop: loop, sockets: sockets, workers: workers, vacancy: vacancy, maximumClients: maximum,
                senders: senders, pressure: pressure, memory: group, freeMemory: freeMemory, logger: logger)
        }
        vacancy.notify { acceptor.perform { $0.roomAgain() } }
        acceptor.perform { $0.start() }
        self.acceptor = acceptor
        keepConfiguration()
        logger.notice(
            "proxy.ready",
            metadata: [
                "listen": "\(listening.description)", "workers": .stringConvertible(workers.count),
                "pid": .stringConvertible(getpid()),
            ].merging(adminField) { $1 })
        if let descriptor = notices.starter {
            starter = ProcessWatch(loop: loop, descriptor: descriptor) { [weak self] in self?.stopWhenUnused() }
            starter?.tell(StarterWord.ready(addresses).bytes)
        }
        if let descriptor = notices.supervisor {
            supervisor = ProcessWatch(loop: loop, descriptor: descriptor) { [weak self] in self?.handOver() }
        }
        notices.ready()
        freeMemory.giveBackAfterStart()
    }

    var adminField: Logger.Metadata {
        guard let places = admin?.places, !places.isEmpty else { return [:] }
        return ["admin": "\(places.joined(separator: ", "))"]
    }
}
