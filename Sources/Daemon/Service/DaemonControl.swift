import Glibc
import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyDecoding
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS

extension ProxyDaemon {
    func controlResources(_ context: ProxyContext, _ upkeep: PinUpkeep) -> ControlResources {
        // unowned: only the loop calls it; the loop runs within run(), and run()'s caller keeps the daemon.
        let daemon = { [unowned self] in self }
        let questions = ControlResources.Daemon(
            unreadiness: { daemon().unreadiness },
            fallback: { daemon().fallback?.text },
            status: { daemon().status(upkeep, $0) },
            metrics: { format, completion in daemon().metrics(context) { completion($0?.text(format) ?? []) } },
            configuration: { daemon().configurationReport },
            files: { daemon().filesReport },
            authority: { daemon().leaves?.authorities.certificates.map(\.pem).joined() ?? "" },
            script: { daemon().proxyScript(askedAs: $0) },
            reload: { daemon().reload() },
            learn: { upkeep.obey($0) },
            gate: { daemon().adminGate })
        let board = TaskBoard(loop: loop, workers: workers, sessionCount: context.sessionCount)
        let collector = MetricsCollector(WorkerInquiry(loop: loop, workers: workers))
        self.collector = collector
        slots = context.slots
        feed = LiveFeed(loop: loop, collector: collector, board: board, names: { context.slots.names }) { [weak self] in
            self?.fill(&$0, $1)
        }
        countingHits = RepeatingTimer(loop: loop, owner: self, everyNanoseconds: 60_000_000_000) { daemon in
            daemon.collector?.collect { [weak daemon] in daemon?.hits.note($0.counters) }
        }
        let cache = CacheDesk(
            daemon: .init(
                cache: cache, configuration: { daemon().configurationInForce },
                purged: { daemon().tell(purged: $0, $1, by: $2) }))
        let incidents = IncidentDesk(
            incidents: { upkeep.incidents }, matched: { upkeep.matchedChains },
            acknowledge: { upkeep.acknowledge($0, by: $1) })
        return ControlResources(daemon: questions, tasks: board, cache: cache, incidents: incidents)
    }

    /// Nil: it can't be opened, which is logged. The proxy serves without it.
    func openControl(_ resources: ControlResources, _ session: LoopSession) -> ControlSocket? {
        let path = ControlSocket.place(in: snapshot.stateDirectory).path
        do throws(SystemError) {
            return try ControlSocket(path: path, loop: loop, session: session, logger: logger) {
                resources.answer($0, $1)
            } feed: { [weak self] in
                self?.feed
            }
        } catch {
            logger.warning(
                "control.failed",
                metadata: [
                    "cause": "\(error.text(ofSocketAt: path))",
                    "effect": "pinproxy reload, tasks and learn can't reach this proxy; SIGHUP reloads it",
                ])
            return nil
        }
    }

    /// Nil: it can't be opened, which is logged. `pinproxy exec` works without it.
    func openRuns(_ context: ProxyContext, _ session: LoopSession) -> RunSocket? {
        let path = RunSocket.place(in: snapshot.stateDirectory).path
        let daemon = RunSocket.Daemon(
            snapshot: { [weak self] in self?.snapshot }, users: { [weak self] in self?.users },
            addresses: { [weak self] in self?.directAddresses.map(\.description) ?? [] },
            isOwnersAlone: snapshot.proxy.owner != nil)
        do throws(SystemError) {
            return try RunSocket(
                path: path, loop: loop, session: session, register: context.runs, logger: logger, daemon: daemon)
        } catch {
            logger.warning(
                "control.failed",
                metadata: [
                    "cause": "\(error.text(ofSocketAt: path))", "effect": "pinproxy exec can't report refusals",
                ])
            return nil
        }
    }

    private var configurationReport: ConfigurationReport {
        ConfigurationReport(
            snapshot, generation: generation, readAt: readAt, history: upkeep?.pinHistory ?? PinHistory(),
            at: WallClock.milliseconds() / 1000)
    }

    private var filesReport: FilesReport {
        FilesReport(
            configuration: FileStamp.absolute(snapshot.files.first ?? ""), readAt: readAt, files: snapshot.sources,
            listings: snapshot.listings, fallback: fallback?.text,
            kept: fallback != nil || keptGeneration.isOf(generation))
    }

    private func proxyScript(askedAs host: String?) -> String {
        ProxyScript.text(directAddresses, askedAs: host, isSecure: snapshot.proxy.tls != nil)
    }

    private var adminGate: AdminGate { admin?.gate ?? AdminGate(snapshot.admin) }

    /// Nil: it can serve.
    private var unreadiness: String? {
        if isStopping { return "the proxy is stopping" }
        if !isAccepting { return "the proxy is starting" }
        if let isolation = network?.isolation { return "this machine has no network: \(isolation)" }
        return leaves.flatMap {
            OwnCertificate.unreadiness(snapshot, $0.authorities, at: WallClock.milliseconds() / 1000)
        }
    }

    private func tell(purged scope: PurgeScope, _ count: Int, by door: ControlDoor) {
        let what =
            switch scope {
            case .all: "all that was stored"
            case .host(let host, let port): "what was stored of \(host)" + (port.map { ":\($0)" } ?? "")
            case .url(let url): "what was stored for \(ShownText("\(url)"))"
            }
        logger.notice(
            "cache.purge",
            metadata: ["cause": "requested by \(door)", "effect": "\(what) was removed: \(Count(count, "response"))"])
    }

    func report(refused cause: String?) -> ReloadReport {
        lastReload = cause == nil ? "accepted" : "refused"
        if cause == nil { reloads.accepted += 1 } else { reloads.refused += 1 }
        return ReloadReport(process: getpid(), configuration: configuration, cause: cause)
    }
}

extension SystemError {
    func text(ofSocketAt path: String) -> String {
        code == EEXIST ? "\(path) exists and is not a socket; remove it" : "\(path): \(self)"
    }
}

extension ProxyDaemon {
    /// Nil: it can't be opened, which is logged. Other clients are served without it.
    func openDoor() -> ListeningSocket? {
        let path = DoorSocket.place(in: snapshot.stateDirectory).path
        do throws(SystemError) {
            // Open to local users like the port: allow_clients and clients apply here too.
            return try .own(at: path, mode: snapshot.proxy.owner == nil ? 0o666 : 0o600, isDoor: true)
        } catch {
            logger.warning(
                "control.failed",
                metadata: [
                    "cause": "\(error.text(ofSocketAt: path))",
                    "effect": "commands of pinproxy exec --isolated and --transparent can't reach this proxy",
                ])
            return nil
        }
    }
}

/// The end of the proxy: it stops accepting, finishes what is in flight, and stops.
extension ProxyDaemon {
    /// The starter has ended. Other runs continue.
    func stopWhenUnused() {
        guard let runs, !runs.isUnused else { return endRuns() }
        starter?.tell(StarterWord.kept.bytes)
        runs.unused = { [weak self] in self?.endRuns() }
    }

    /// No run may begin with an ending proxy: the next starts another.
    private func endRuns() {
        guard !isStopping else { return }
        runs?.stop()
        stop()
    }

    func stop() {
        guard !isStopping else {
            logger.warning("proxy.stop", metadata: ["cause": "asked to stop twice: ending at once"])
            telemetry?.stop()
            return endAtOnce()
        }
        notices.stopping()
        let timeouts = snapshot.timeouts
        drain(within: timeouts.drain, quietTunnels: timeouts.drainTunnels, key: "drain") { _ in }
    }

    /// Leaves the service to the next proxy, and finishes what is in flight.
    func handOver() {
        guard !hasHandedOver else { return }
        hasHandedOver = true
        // systemd would attribute other notices to the next proxy.
        notices = DaemonNotices(handedOver: notices.handedOver)
        logger.notice("proxy.handover")
        guard !isStopping else { return letGo() }
        let patience = snapshot.timeouts.handover
        drain(within: patience, quietTunnels: patience, key: "handover") { $0.letGo() }
    }

    /// Releases what only one proxy can have: paths of sockets, and the state directory.
    private func letGo() {
        closeControl()
        notices.handedOver()
        supervisor?.tell(SupervisorWord.handedOver.bytes)
    }

    /// - Parameters:
    ///   - patience: exchanges in flight after that are cut.
    ///   - quietTunnels: how long a tunnel may be silent.
    ///   - key: the name of `patience` in `timeouts`.
    ///   - accepted: called once clients are no longer accepted.
    private func drain(
        within patience: Duration, quietTunnels: Duration, key: String,
        accepted: @escaping @Sendable (ProxyDaemon) -> Void
    ) {
        isStopping = true
        // For who comes after, and has the state directory then.
        cache.disk?.close()
        policy?.stop()
        policy = nil
        telemetry?.drain()
        runningWorkers = workers.count
        let daemon = LoopBound(self, on: loop)
        if let acceptor {
            // Accepted clients must reach their worker before it drains, or they would be reset.
            acceptor.perform { acceptor in
                acceptor.stop()
                daemon.post { daemon in
                    daemon.drainWorkers(quietTunnels)
                    accepted(daemon)
                }
            }
        } else {
            drainWorkers(quietTunnels)
            accepted(self)
        }
        drainTimer = Timer(loop: loop, owner: self, afterNanoseconds: patience.nanoseconds) { $0.drainTimedOut(key) }
    }

    private func drainTimedOut(_ key: String) {
        logger.warning("proxy.stop", metadata: ["cause": "timeouts.\(key) has passed: cutting what is still in flight"])
        endAtOnce()
    }

    private func drainWorkers(_ quietTunnels: Duration) {
        let daemon = LoopBound(self, on: loop)
        for worker in workers {
            worker.perform { $0.drain(quietTunnels: quietTunnels) { daemon.post { $0.workerEnded() } } }
        }
    }

    private func endAtOnce() {
        for worker in workers { worker.perform { $0.stopClients() } }
    }

    private func workerEnded() {
        runningWorkers -= 1
        guard runningWorkers == 0 else { return }
        drainTimer = nil
        if !hasHandedOver { closeControl() }
        network?.stop()
        for worker in workers { worker.stop() }
        acceptor?.stop()
        decoders?.stop()
        guard let telemetry else { return loop.stop() }
        telemetry.finish { [weak self] in self?.loop.stop() }
    }

    private func closeControl() {
        countingHits = nil
        control?.stop()
        admin?.stop()
        runs?.stop()
        upkeep?.stop()
    }
}
