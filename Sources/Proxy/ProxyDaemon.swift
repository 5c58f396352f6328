// Proxy: the rooms put together into the daemon that every program on the machine talks to.

package import Configuration
import EventLoop
import Glibc
import Dispatch
package import Logging
import Security
import Session
import Synchronization
import TLS

/// The running proxy: authority, workers, listeners, and what signals ask of it.
///
/// SIGHUP reads the configuration again, SIGUSR1 what `pinproxy learn` orders. SIGTERM and SIGINT let
/// what is under way finish, and a second one of these ends at once.
package final class ProxyDaemon {
    /// What a supervisor is told, on the daemon's main thread.
    package struct Notices {
        /// Clients are accepted.
        package var ready: () -> Void = {}
        /// A reload has begun; ``ready`` follows when it is over, however it went.
        package var reloading: () -> Void = {}
        /// No more clients are accepted.
        package var stopping: () -> Void = {}
        /// A reload is over, with the problems if it was refused.
        package var reloaded: (ConfigurationProblems?) -> Void = { _ in }

        package init() {}
    }

    private let load: () throws(ConfigurationProblems) -> Snapshot
    private let logger: Logger
    private let output: LogOutput
    private let notices: Notices

    private let loop: EventLoop
    private var snapshot: Snapshot
    private var authority: LocalAuthority?
    private var workers: [WorkerThread] = []
    private var acceptor: LoopBound<Acceptor>?
    private var upkeep: PinUpkeep?
    private var workersUnderWay = 0
    private var isStopping = false
    private var drainTimer: Timer?
    private let freeMemory = FreeMemory()
    private var afterReload: Timer?
    /// How long after a reload what the old configuration took is given back: most of its users have gone by then.
    private static let afterReloadNanoseconds: UInt64 = 10_000_000_000

    /// - Parameters:
    ///   - snapshot: the configuration to begin with.
    ///   - load: reads it again.
    package init(
        snapshot: Snapshot, logger: Logger, output: LogOutput, notices: Notices,
        load: @escaping () throws(ConfigurationProblems) -> Snapshot
    ) throws {
        self.snapshot = snapshot
        self.logger = logger
        self.output = output
        self.notices = notices
        self.load = load
        loop = try EventLoop()
    }

    /// Serves until it is told to stop. To be called once, on the main thread.
    package func run() throws {
        let signals = ControlSignals.block()
        try start()
        signals.watch(reporting: LoopBound(self, on: loop), on: loop.handle)
        loop.run()
        logger.notice("proxy.stop")
    }

    private func start() throws {
        logger.notice("proxy.start", metadata: ["config": "\(snapshot.files.first ?? "")"])
        let unixTime: @Sendable () -> Int64 = { WallClock.milliseconds() / 1000 }
        let files = AuthorityFiles(
            certificate: snapshot.authority.certificatePath, key: snapshot.authority.privateKeyPath)
        let (authority, isNew) = try files.loadOrCreate(at: unixTime())
        if isNew { logger.notice("authority.created", metadata: ["certificate": "\(files.certificate)"]) }
        self.authority = authority
        for warning in snapshot.warnings { logger.warning("config.warning", metadata: ["cause": "\(warning)"]) }
        let configuration = try ActiveConfiguration(snapshot, authority: authority)
        let listeners = OwnListeners()
        let upkeep = try PinUpkeep(
            loop: loop, configuration: configuration, listeners: listeners, logger: logger, unixTime: unixTime,
            listsChanged: { [unowned self] in reloadRevocationLists() })
        let workerCount = snapshot.proxy.workers ?? Self.availableProcessors
        let context = try ProxyContext(
            authority: authority, leafLifetime: snapshot.authority.leafLifetime, pins: upkeep.watch,
            listeners: listeners, logger: logger, logOutput: output, freeMemory: freeMemory,
            idleUpstreams: UpstreamPool.capacity(descriptors: Descriptor.limit, pools: workerCount), unixTime: unixTime)
        let clientEnded = EndedClients()
        for number in 1...workerCount {
            workers.append(
                try .start(number: number, context: context, configuration: configuration) { clientEnded.report() })
        }
        upkeep.start()
        self.upkeep = upkeep
        try listen(clientEnded)
    }

    /// Processors that this process may run on.
    private static var availableProcessors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// Opens the listeners on the first worker's loop and waits until they are there.
    private func listen(_ clientEnded: EndedClients) throws {
        let wanted = snapshot.proxy.listen.compactMap(SocketAddress.init)
        let maximum = snapshot.limits.clients
        let (workers, logger) = (workers, logger)
        let outcome = Rendezvous<Result<(LoopBound<Acceptor>, [SocketAddress]), SystemError>>()
        workers[0].perform { worker in
            let acceptor = Acceptor(loop: worker.loop, workers: workers, maximumClients: maximum, logger: logger)
            do throws(SystemError) {
                try acceptor.listen(on: wanted, telling: worker.context.listeners)
                clientEnded.notify(LoopBound(acceptor, on: worker.loop), on: worker.loop.handle)
                outcome.put(.success((LoopBound(acceptor, on: worker.loop), acceptor.addresses)))
            } catch {
                outcome.put(.failure(error))
            }
        }
        let (acceptor, addresses) = try outcome.wait().get()
        self.acceptor = acceptor
        logger.notice(
            "proxy.ready",
            metadata: [
                "listen": "\(addresses.map(\.description).joined(separator: ", "))",
                "workers": "\(workers.count)", "pid": "\(getpid())",
            ])
        notices.ready()
        // What the reading of the files took.
        freeMemory.giveBack()
    }

    // MARK: Signals

    func reload() {
        guard !isStopping, let authority else { return }
        notices.reloading()
        defer { notices.ready() }
        // Whoever asks for a reload may want to read what was counted until then.
        upkeep?.save()
        do throws(ConfigurationProblems) {
            let fresh = try load()
            let configuration: ActiveConfiguration
            do {
                configuration = try ActiveConfiguration(fresh, authority: authority)
            } catch {
                let place = Place(file: fresh.files.first ?? "")
                throw ConfigurationProblems([Problem(.error, at: place, "can't be put into force: \(error)")])
            }
            warnOfRestart(fresh)
            putIntoForce(configuration)
            let clients = fresh.limits.clients
            if let acceptor { workers[0].perform { acceptor.value(on: $0.loop).limit(clients: clients) } }
            logger.notice("config.reload", metadata: ["files": "\(fresh.files.joined(separator: ", "))"])
            for warning in fresh.warnings { logger.warning("config.warning", metadata: ["cause": "\(warning)"]) }
            afterReload = Timer(loop: loop, afterNanoseconds: Self.afterReloadNanoseconds) { [freeMemory] in
                freeMemory.giveBack()
            }
            notices.reloaded(nil)
        } catch {
            for problem in error.problems { logger.error("config.error", metadata: ["cause": "\(problem)"]) }
            notices.reloaded(error)
        }
    }

    private func putIntoForce(_ configuration: ActiveConfiguration) {
        snapshot = configuration.snapshot
        upkeep?.replace(with: configuration)
        for worker in workers { worker.perform { $0.replace(with: configuration) } }
    }

    /// Puts lists into force that somebody has fetched anew, and nothing else of the configuration. One that is broken
    /// changes nothing: the lists read before stay in force until they are stale.
    private func reloadRevocationLists() {
        guard !isStopping, let authority else { return }
        do {
            guard let fresh = try snapshot.withFreshRevocationLists() else { return }
            putIntoForce(try ActiveConfiguration(fresh, authority: authority))
            let files = Set(fresh.revocationLists.flatMap(\.lists.paths)).sorted()
            logger.notice("crl.reload", metadata: ["files": "\(files.joined(separator: ", "))"])
        } catch {
            logger.warning("crl.failed", metadata: ["cause": "\(error)", "effect": "the lists read before stay in force"])
        }
    }

    func obeyOrders() {
        upkeep?.obeyOrders()
    }

    /// What can't be changed in a running proxy is said, not ignored.
    private func warnOfRestart(_ fresh: Snapshot) {
        var changed: [String] = []
        if fresh.proxy.listen != snapshot.proxy.listen { changed.append("proxy.listen") }
        if fresh.proxy.workers != snapshot.proxy.workers { changed.append("proxy.workers") }
        if fresh.authority != snapshot.authority { changed.append("authority") }
        if fresh.log.format != snapshot.log.format { changed.append("log.format") }
        if fresh.log.level != snapshot.log.level { changed.append("log.level") }
        for key in changed {
            logger.warning("config.warning", metadata: ["cause": "\(key) has changed: it takes effect at the next start"])
        }
    }

    func stop() {
        guard !isStopping else {
            logger.warning("proxy.stop", metadata: ["cause": "told to stop twice: ending at once"])
            return endAtOnce()
        }
        isStopping = true
        notices.stopping()
        if let acceptor { workers[0].perform { acceptor.value(on: $0.loop).stop() } }
        workersUnderWay = workers.count
        let daemon = LoopBound(self, on: loop)
        let handle = loop.handle
        for worker in workers {
            worker.perform { worker in
                worker.drain { handle.post { loop in daemon.value(on: loop).workerEnded() } }
            }
        }
        drainTimer = Timer(loop: loop, afterNanoseconds: snapshot.timeouts.drain.nanoseconds) { [unowned self] in
            logger.warning("proxy.stop", metadata: ["cause": "timeouts.drain is over: cutting what is still under way"])
            endAtOnce()
        }
    }

    private func endAtOnce() {
        for worker in workers { worker.perform { $0.stopClients() } }
    }

    private func workerEnded() {
        workersUnderWay -= 1
        guard workersUnderWay == 0 else { return }
        drainTimer = nil
        upkeep?.stop()
        for worker in workers { worker.stop() }
        loop.stop()
    }
}

/// One value from one thread to another that waits for it.
private final class Rendezvous<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    private let isThere = DispatchSemaphore(value: 0)

    func put(_ new: Value) {
        value.withLock { $0 = new }
        isThere.signal()
    }

    func wait() -> Value {
        while true {
            isThere.wait()
            if let value = value.withLock({ $0 }) { return value }
        }
    }
}

/// Tells the acceptor, on its loop, that a client has gone.
private final class EndedClients: Sendable {
    private let target = Mutex<(LoopBound<Acceptor>, EventLoop.Handle)?>(nil)

    func notify(_ acceptor: LoopBound<Acceptor>, on handle: EventLoop.Handle) {
        target.withLock { $0 = (acceptor, handle) }
    }

    func report() {
        guard let (acceptor, handle) = target.withLock({ $0 }) else { return }
        handle.post { loop in acceptor.value(on: loop).roomAgain() }
    }
}

extension SocketAddress {
    init?(_ address: ListenAddress) {
        guard let ip = IPAddress(address.ip) else { return nil }
        self.init(ip: ip, port: address.port)
    }
}
