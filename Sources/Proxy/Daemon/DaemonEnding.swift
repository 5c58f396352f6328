import Configuration
import Decoding
import EventLoop
import Logging
import Session

/// How the proxy ends: it accepts nobody any more, lets what is under way finish, and goes.
extension ProxyDaemon {
    /// Whoever started the proxy for a run is gone. Others' runs go on.
    func stopWhenUnused() {
        guard let runs, !runs.isUnused else { return endRuns() }
        starter?.tellKept()
        runs.unused = { [weak self] in self?.endRuns() }
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
        let patience = snapshot.timeouts.drain.nanoseconds
        drainTimer = Timer(loop: loop, owner: self, afterNanoseconds: patience) { $0.drainTimedOut() }
    }

    private func drainTimedOut() {
        logger.warning("proxy.stop", metadata: ["cause": "timeouts.drain is over: cutting what is still under way"])
        endAtOnce()
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
        decoders?.stop()
        loop.stop()
    }
}
