internal import Foundation
internal import Proxy
internal import Security
internal import TLS

/// The proxy that a state directory belongs to, running or not, as the learn command sees it.
struct LearningProxy {
    let directory: String
    /// Nil if it isn't running.
    let process: pid_t?
    private let orders: StateFile<LearnOrder>
    private let chains: StateFile<ChainHistory>

    init(directory: String) {
        self.directory = directory
        process = ProcessLock.holder(StateFiles(directory: directory).processID)
        orders = LearnOrder.file(in: directory)
        chains = LearnOrder.chains(in: directory)
    }

    /// Until when it learns, if it does.
    func learnsUntil(now: UnixTime) throws -> UnixTime? {
        try orders.read()?.until.flatMap { $0 > now ? $0 : nil }
    }

    /// Has the proxy do so, and waits until it has. One that isn't running does it at its next start.
    func order(until: UnixTime?, forgetting: Bool = false) throws {
        let order = LearnOrder(id: UUID().uuidString, until: until, forgets: forgetting)
        try orders.write(order)
        guard let process else {
            if forgetting { unlink(chains.path) }
            return
        }
        guard kill(process, SIGUSR1) == 0 else {
            throw CommandFailure("process \(process) can't be signalled: \(systemReason())")
        }
        let deadline = ContinuousClock.now + .seconds(15)
        while ContinuousClock.now < deadline {
            if try chains.read()?.obeyed == order.id { return }
            guard kill(process, 0) == 0 || errno == EPERM else { throw CommandFailure("the proxy has ended") }
            usleep(10_000)
        }
        throw CommandFailure("process \(process) was told, but hasn't answered within 15 seconds; its log says more")
    }

    /// All that was recorded. What a running proxy has seen until now is in it after an ``order(until:forgetting:)``.
    func history() throws -> ChainHistory {
        try chains.read() ?? ChainHistory()
    }
}
