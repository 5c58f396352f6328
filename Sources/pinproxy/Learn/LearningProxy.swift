internal import HTTPWire
internal import Records
internal import Security
internal import TLS

/// The proxy that a state directory belongs to, running or not, as the learn command sees it.
struct LearningProxy {
    let directory: String
    var isRunning: Bool { proxy != nil }
    /// Nil if it isn't running.
    private let proxy: RunningProxy?
    private let chains: StateFile<ChainHistory>

    init(directory: String) {
        self.directory = directory
        proxy = RunningProxy.find(StateFiles(directory: directory))
        chains = ChainRecorder.file(in: directory)
    }

    /// Has the proxy do so, and waits until it has. Of one that isn't running, what it has left is changed.
    /// - Returns: until when it learned before, if it did.
    @discardableResult
    func obey(_ order: LearnOrder, now: UnixTime) throws -> UnixTime? {
        if let proxy {
            let before: LearnReport = try proxy.ask(.post, LearnOrder().target)
            if order != LearnOrder() { let _: LearnReport = try proxy.ask(.post, order.target) }
            return before.until
        }
        guard var history = try chains.read() else { return nil }
        let before = history.learnsUntil.flatMap { $0 > now ? $0 : nil }
        switch order.time {
        case .unchanged: break
        case .until(let end): history.learnsUntil = end
        case .stop: history.learnsUntil = nil
        }
        if order.forgets { history.forget() }
        if order != LearnOrder() { try chains.write(history) }
        return before
    }

    /// All that was recorded. What a running proxy has seen until now is in it after an ``obey(_:now:)``.
    func history() throws -> ChainHistory {
        try chains.read() ?? ChainHistory()
    }
}
