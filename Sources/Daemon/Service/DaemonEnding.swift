import Configuration
import Decoding
import EventLoop
import Logging
import Session

/// How the proxy ends: it accepts nobody any more, finishes what is in flight, and stops.
extension ProxyDaemon {
    /// The process that started the proxy for its run has ended. Runs of others continue.
    func stopWhenUnused() {
        guard let runs, !runs.isUnused else { return endRuns() }
        starter?.tellKept()
        runs.unused = { [weak self] in self?.endRuns() }
    }

    /// No other run may begin with a proxy that ends: the next run starts another proxy.
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
        notices.stopping()
        let timeouts = snapshot.timeouts
        drain(within: timeouts.drain, quietTunnels: timeouts.drainTunnels, key: "drain") { _ in }
    }

    /// Leaves the service to the next proxy, and finishes what is in flight. Nobody waits for that.
    func handOver() {
        guard !hasHandedOver else { return }
        hasHandedOver = true
        // systemd would take them for the next proxy's.
        notices = DaemonNotices(handedOver: notices.handedOver)
        logger.notice("proxy.handover")
        guard !isStopping else { return letGo() }
        let patience = snapshot.timeouts.handover
        drain(within: patience, quietTunnels: patience, key: "handover") { $0.letGo() }
    }

    /// Gives up what only one proxy can have: the paths of sockets, the files of the state directory, and their lock.
    private func letGo() {
        closeControl()
        notices.handedOver()
        supervisor?.tellHandedOver()
    }

    /// Accepts nobody any more.
    /// - Parameters:
    ///   - patience: what is still in flight afterwards is cut.
    ///   - quietTunnels: how long nothing may move in a tunnel.
    ///   - key: of `timeouts`, that bounds it.
    ///   - accepted: called once nobody is accepted.
    private func drain(
        within patience: Duration, quietTunnels: Duration, key: String, accepted: @escaping @Sendable (ProxyDaemon) -> Void
    ) {
        isStopping = true
        workersUnderWay = workers.count
        let daemon = LoopBound(self, on: loop)
        let handle = loop.handle
        if let acceptor {
            // Accepted clients must reach their worker before it drains: later, they would be reset.
            acceptor.perform { acceptor in
                acceptor.stop()
                handle.post { loop in
                    let daemon = daemon.value(on: loop)
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
        let handle = loop.handle
        for worker in workers {
            worker.perform { worker in
                worker.drain(quietTunnels: quietTunnels) { handle.post { loop in daemon.value(on: loop).workerEnded() } }
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
        if !hasHandedOver { closeControl() }
        network?.stop()
        for worker in workers { worker.stop() }
        acceptor?.stop()
        decoders?.stop()
        loop.stop()
    }

    private func closeControl() {
        countingHits = nil
        control?.stop()
        admin?.stop()
        runs?.stop()
        upkeep?.stop()
    }
}
