internal import Foundation
internal import Proxy
internal import Security
internal import TLS

/// The proxy that a state directory belongs to, running or not, as the learn command sees it.
struct LearningProxy {
    let directory: String
    var isRunning: Bool { proxy != nil }
    /// Nil if it isn't running.
    private let proxy: RunningProxy?
    private let orders: StateFile<LearnOrder>
    private let chains: StateFile<ChainHistory>

    init(directory: String) throws {
        self.directory = directory
        proxy = try RunningProxy.find(StateFiles(directory: directory))
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
        guard let proxy else {
            if forgetting { unlink(chains.path) }
            return
        }
        try proxy.send(SIGUSR1)
        let deadline = ContinuousClock.now + .seconds(15)
        while ContinuousClock.now < deadline {
            if try chains.read()?.obeyed == order.id { return }
            guard proxy.isRunning else { throw CommandFailure("process \(proxy.process) ended before it answered") }
            usleep(10_000)
        }
        throw CommandFailure(
            "process \(proxy.process) was told, but hasn't answered within 15 seconds; its log says more")
    }

    /// All that was recorded. What a running proxy has seen until now is in it after an ``order(until:forgetting:)``.
    func history() throws -> ChainHistory {
        try chains.read() ?? ChainHistory()
    }
}
