import Clients
import EventLoop
import Logging

/// Sheds load before the control group's memory is used up and the kernel kills the process.
///
/// It is on the acceptor's loop, so that neither a reload nor a busy worker delays it. No request measures anything.
final class MemoryWatch {
    /// How fast the memory may be taken: it is measured again before what is left could be gone.
    private static let bytesPerSecond = 256 << 20
    private static let milliseconds = 20...1000
    /// Clients that are accepted between two measurements.
    private static let clientsBetween = 32

    private let loop: EventLoop
    private let group: MemoryGroup
    private let pressure: MemoryPressure
    private let shed: (@escaping @Sendable (Int) -> Void) -> Void
    private let ended: () -> Void
    private let shortage: Shortage
    private var clients = 0
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.measure() }

    /// - Parameters:
    ///   - shed: gives up what is idle, and reports on any thread how many connections it closed.
    ///   - ended: there is memory again.
    init(
        loop: EventLoop, group: MemoryGroup, pressure: MemoryPressure, logger: Logger,
        shed: @escaping (@escaping @Sendable (Int) -> Void) -> Void, ended: @escaping () -> Void
    ) {
        self.loop = loop
        self.group = group
        self.pressure = pressure
        self.shed = shed
        self.ended = ended
        shortage = Shortage("memory.limit", .loadShed, loop: loop, logger: logger)
    }

    /// A client was accepted.
    func clientAccepted() {
        clients += 1
        if clients >= Self.clientsBetween { measure() }
    }

    private static func pause(after use: MemoryUse?) -> UInt64 {
        let left = min(use.map { $0.limit - $0.used } ?? .max, bytesPerSecond)
        let wanted = left / (bytesPerSecond / 1000)
        return UInt64(min(max(wanted, milliseconds.lowerBound), milliseconds.upperBound)) * 1_000_000
    }

    func measure() {
        clients = 0
        let (level, isAnother) = pressure.measure { group.use }
        let use = pressure.use
        deadline.set(afterNanoseconds: Self.pause(after: use))
        guard level > .none, let use else {
            if isAnother { ended() }
            return
        }
        shortage.strike(.warning, ["used": .stringConvertible(use.used), "limit": .stringConvertible(use.limit)])
        let (watch, handle) = (LoopBound(self, on: loop), loop.handle)
        shed { count in handle.post { watch.value(on: $0).shortage.met(count) } }
    }
}
