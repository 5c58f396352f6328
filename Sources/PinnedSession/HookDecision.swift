import PinproxyEventLoop

/// One decision of a hook that a task waits for. On the loop, which never waits.
final class HookDecision<Choice: Sendable> {
    private(set) var choice: Choice?
    private var task: Task<Void, Never>?

    /// - Parameter decided: called once on the loop, unless the decision is released first.
    init(
        on loop: EventLoop, _ decide: @escaping @Sendable () async -> Choice,
        decided: @escaping () -> Void
    ) {
        let decision = LoopWeak(self, on: loop)
        let decided = LoopBound(decided, on: loop)
        task = Task {
            let choice = await decide()
            decision.post { decision in
                decision.choice = choice
                decision.task = nil
                decided.post { $0() }
            }
        }
    }

    var isPending: Bool { choice == nil }

    deinit { task?.cancel() }
}
