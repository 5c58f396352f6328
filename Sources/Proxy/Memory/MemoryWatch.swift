import EventLoop
import Logging

/// Sheds load before the control group's memory is used up and the kernel kills the process.
///
/// It is on the acceptor's loop, so that neither a reload nor a busy worker delays it. No request measures anything.
final class MemoryWatch {
    /// How often it is measured: while there is enough, and while there is little left.
    private static let calmNanoseconds: UInt64 = 1_000_000_000
    private static let alertNanoseconds: UInt64 = 100_000_000
    /// From this share on (in thousandths) there is little left.
    private static let alert = 700
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
    ///   - shed: closes idle connections, and reports their number on any thread.
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

    func measure() {
        clients = 0
        let use = group.use
        let (level, isAnother) = pressure.measured(use)
        let isAlert = level > .none || (use?.share ?? 0) >= Self.alert
        deadline.set(afterNanoseconds: isAlert ? Self.alertNanoseconds : Self.calmNanoseconds)
        guard level > .none, let use else {
            if isAnother { ended() }
            return
        }
        shortage.strike(.warning, ["used": .stringConvertible(use.used), "limit": .stringConvertible(use.limit)])
        let (watch, handle) = (LoopBound(self, on: loop), loop.handle)
        shed { count in handle.post { watch.value(on: $0).shortage.met(count) } }
    }
}
