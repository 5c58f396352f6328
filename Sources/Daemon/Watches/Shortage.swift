import Logging
import PinproxyEventLoop
import PinproxyRecords
import PinproxyTransport

/// A shortage that may recur thousands of times a second: its beginning and end are logged, with duration and count.
final class Shortage {
    private let loop: EventLoop
    private let logger: Logger
    private let event: Logger.Message
    private let effect: Effect
    private let quietNanoseconds: UInt64
    private let lasts: () -> Bool
    private var began: MonotonicTime?
    private var last = MonotonicTime(nanoseconds: 0)
    private var count = 0
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.review() }

    /// Its effect on connections or bodies.
    enum Effect: String {
        case newClientsWait = "new clients wait"
        case idleConnectionsClosed = "idle connections are closed"
        case loadShed = "new clients wait, and idle connections are closed; if that isn't enough, requests get 503"
        case bodiesNotKept = "exchanges that need a kept body get 503"

        /// The log's field with their count.
        fileprivate var counted: String {
            switch self {
            case .newClientsWait: "waited"
            case .idleConnectionsClosed, .loadShed: "closed"
            case .bodiesNotKept: "not_kept"
            }
        }
    }

    /// - Parameters:
    ///   - quietNanoseconds: without a shortage, until it has ended.
    ///   - lasts: whether clients wait now.
    init(
        _ event: Logger.Message, _ effect: Effect = .newClientsWait, loop: EventLoop, logger: Logger,
        quietNanoseconds: UInt64 = 5_000_000_000, lasts: @escaping () -> Bool = { false }
    ) {
        self.event = event
        self.effect = effect
        self.loop = loop
        self.logger = logger
        self.quietNanoseconds = quietNanoseconds
        self.lasts = lasts
    }

    func strike(_ level: Logger.Level, _ fields: @autoclosure () -> Logger.Metadata) {
        last = loop.now
        deadline.set(afterNanoseconds: quietNanoseconds)
        guard began == nil else { return }
        began = last
        logger.log(level: level, event, metadata: fields().merging(["effect": "\(effect.rawValue)"]) { $1 })
    }

    /// Counts what it did: clients that waited, connections closed, bodies not kept.
    func met(_ more: Int = 1) {
        guard began != nil else { return }
        count += more
        last = loop.now
    }

    /// The shortage has lasted until now.
    func lasted() {
        if began != nil { last = loop.now }
    }

    private func review() {
        guard let began else { return }
        if lasts() { lasted() }
        let quiet = loop.now - last
        guard quiet >= quietNanoseconds else { return deadline.set(afterNanoseconds: quietNanoseconds - quiet) }
        logger.notice(
            event,
            metadata: [
                "effect": "over", effect.counted: .stringConvertible(count),
                "duration": .stringConvertible(LoggedTime(nanoseconds: last - began)),
            ])
        self.began = nil
        count = 0
    }
}

/// Logs when the budget for bodies is spent, and when it has room again. On the main loop.
final class BudgetWatch {
    private let budget: BodyBudget
    private let shortage: Shortage

    init(_ budget: BodyBudget, loop: EventLoop, logger: Logger) {
        self.budget = budget
        shortage = Shortage("bodies.limit", .bodiesNotKept, loop: loop, logger: logger)
        // The budget keeps the watch as long as the process lives.
        let watch = LoopBound(self, on: loop)
        budget.notify { watch.post { $0.struck() } }
    }

    private func struck() {
        let refusals = budget.takeRefusals()
        shortage.strike(
            .warning, ["limit": .stringConvertible(budget.limit), "in_use": .stringConvertible(budget.inUse)])
        shortage.met(refusals)
    }
}
