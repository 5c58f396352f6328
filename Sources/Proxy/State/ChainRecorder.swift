import Configuration
import Logging
import Security
import Synchronization
import TLS

/// Records verified chains, of entries that ask for it and, while the proxy learns, of all hosts.
final class ChainRecorder: Sendable {
    private let history: KeptValue<ChainHistory>
    private let orders: StateFile<LearnOrder>
    private let logger: Logger
    /// When learning ends; in the past if it isn't under way.
    private let until = Atomic<UnixTime>(.min)
    private let saidFull = Atomic(false)

    init(directory: String, logger: Logger) {
        history = KeptValue(ChainHistory(), in: LearnOrder.chains(in: directory), logger: logger)
        orders = LearnOrder.file(in: directory)
        self.logger = logger
    }

    /// Any thread; once for each connection to an origin.
    func note(_ verdict: Verdict, of host: String, port: UInt16, entry: HostEntry?, at time: UnixTime) {
        guard entry?.records == true || time < until.load(ordering: .relaxed) else { return }
        // Where invalid certificates are allowed, the chain is one that nobody vouches for.
        guard verdict.isAccepted, let chain = verdict.chain, entry?.policy.allowsInvalidCertificates != true else {
            return
        }
        let links = ChainHistory.links(of: chain)
        let isRoom = history.change {
            $0.record(links, matching: verdict.matchedPin, of: host, port: port, at: time)
        }
        if !isRoom, !saidFull.exchange(true, ordering: .relaxed) {
            logger.warning(
                "state.full",
                metadata: [
                    "file": "chains.json", "effect": "\(ChainHistory.maximumHosts) hosts are recorded; no more are",
                ])
        }
    }

    // MARK: On the main loop

    /// Does what the order in the state directory asks for, and says so there.
    func obey(at time: UnixTime) {
        let order: LearnOrder
        do throws(StateFileProblem) {
            guard let read = try orders.read() else { return }
            order = read
        } catch {
            return logger.warning("learn.failed", metadata: ["cause": "\(error)"])
        }
        let isNew = history.value.obeyed != order.id
        if order.forgets, isNew {
            history.change { $0.forget() }
            saidFull.store(false, ordering: .relaxed)
            logger.notice("learn.forget")
        }
        learn(until: order.until, at: time)
        history.change { $0.obeyed = order.id }
        history.save(forced: true)
    }

    private func learn(until end: UnixTime?, at time: UnixTime) {
        let before = until.exchange(end ?? .min, ordering: .relaxed)
        if let end, end > time, end != before {
            logger.notice("learn.begin", metadata: ["until": "\(end)", "hosts": "all"])
        } else if before > time, end ?? .min <= time {
            logger.notice("learn.end")
        }
    }

    /// Says when learning is over; to be called now and then.
    func review(at time: UnixTime) {
        let end = until.load(ordering: .relaxed)
        if end != .min, end <= time { learn(until: nil, at: end - 1) }
    }

    func save() { history.save() }
}
