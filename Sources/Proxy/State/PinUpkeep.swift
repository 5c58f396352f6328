import Configuration
import EventLoop
import Logging

/// What the daemon does about pins by itself, on its main loop: the counts are written, and what no
/// longer counts is forgotten.
final class PinUpkeep {
    private static let minute: UInt64 = 60_000_000_000
    private static let day: UInt64 = 24 * 60 * minute

    private let loop: EventLoop
    private let context: ProxyContext
    private var snapshot: Snapshot
    private var saving: RepeatingTimer?
    private var daily: RepeatingTimer?

    init(loop: EventLoop, context: ProxyContext, snapshot: Snapshot) {
        self.loop = loop
        self.context = context
        self.snapshot = snapshot
    }

    func start() {
        // Days of the monotonic clock: a wall clock that is set neither skips one nor repeats it.
        saving = RepeatingTimer(loop: loop, everyNanoseconds: Self.minute) { [unowned self] in save() }
        daily = RepeatingTimer(loop: loop, everyNanoseconds: Self.day) { [unowned self] in review() }
        review()
    }

    /// Goes on under a fresh configuration.
    func replace(with fresh: Snapshot) {
        snapshot = fresh
        review()
    }

    /// Writes what has changed.
    func save() {
        context.ledger.save()
    }

    func stop() {
        saving = nil
        daily = nil
        save()
    }

    private func review() {
        context.ledger.settle(snapshot, at: context.unixTime())
    }
}
