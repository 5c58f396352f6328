import EventLoop
import Logging
import Transport

/// Tells when the budget for bodies is spent, and when it has had room for a while. On the main loop.
final class BudgetWatch {
    private let budget: BodyBudget
    private let shortage: Shortage

    init(_ budget: BodyBudget, loop: EventLoop, logger: Logger) {
        self.budget = budget
        shortage = Shortage("bodies.limit", .bodiesNotKept, loop: loop, logger: logger)
        // The budget keeps the watch, as long as the process lives.
        let (watch, handle) = (LoopBound(self, on: loop), loop.handle)
        budget.notify { handle.post { watch.value(on: $0).struck() } }
    }

    private func struck() {
        let refusals = budget.takeRefusals()
        shortage.strike(
            .warning, ["limit": .stringConvertible(budget.limit), "in_use": .stringConvertible(budget.inUse)])
        shortage.met(refusals)
    }
}
