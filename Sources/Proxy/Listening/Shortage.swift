import EventLoop
import Logging

/// Something that new clients have to wait for, perhaps thousands of times in a second. Told when it begins,
/// and once more when nobody had to wait for a while, with how long it went on and how many have waited.
final class Shortage {
    private let loop: EventLoop
    private let logger: Logger
    private let event: Logger.Message
    private let quietNanoseconds: UInt64
    private let goesOn: () -> Bool
    private var began: MonotonicTime?
    private var last = MonotonicTime(nanoseconds: 0)
    private var waited = 0
    private lazy var deadline = Deadline(loop: loop) { [unowned self] in review() }

    /// - Parameters:
    ///   - quietNanoseconds: how long nobody must have waited before it is over.
    ///   - goesOn: whether clients wait at this moment.
    init(
        _ event: Logger.Message, loop: EventLoop, logger: Logger, quietNanoseconds: UInt64 = 5_000_000_000,
        goesOn: @escaping () -> Bool
    ) {
        self.event = event
        self.loop = loop
        self.logger = logger
        self.quietNanoseconds = quietNanoseconds
        self.goesOn = goesOn
    }

    /// A client has to wait.
    /// - Parameter fields: of the line, if this is where it begins.
    func strike(_ level: Logger.Level, _ fields: @autoclosure () -> Logger.Metadata) {
        last = loop.now
        deadline.set(afterNanoseconds: quietNanoseconds)
        guard began == nil else { return }
        began = last
        logger.log(level: level, event, metadata: fields().merging(["effect": "new clients wait"]) { $1 })
    }

    /// A client was let in that had to wait.
    func letIn() {
        guard began != nil else { return }
        waited += 1
        last = loop.now
    }

    private func review() {
        guard let began else { return }
        if goesOn() { return deadline.set(afterNanoseconds: quietNanoseconds) }
        logger.notice(
            event,
            metadata: [
                "effect": "over", "waited": .stringConvertible(waited),
                "duration": .stringConvertible((last - began) / 1_000_000),
            ])
        self.began = nil
        waited = 0
    }
}
