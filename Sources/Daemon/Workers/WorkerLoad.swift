import Synchronization

/// A worker's load, for other threads.
final class WorkerLoad: Sendable {
    private let clients = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let taken = Atomic<Int>(0)
    private let vacancy: Vacancy

    init(_ vacancy: Vacancy) {
        self.vacancy = vacancy
    }

    /// Clients from handover to end.
    var count: Int { clients.load(ordering: .sequentiallyConsistent) }
    /// Clients that the worker hasn't taken yet; a stalled worker has some.
    var waitingCount: Int { waiting.load(ordering: .relaxed) }

    /// Requests begun, as last reported.
    var requests: Int { taken.load(ordering: .relaxed) }

    func tell(requests: Int) { taken.store(requests, ordering: .relaxed) }

    func handedOver() {
        clients.add(1, ordering: .relaxed)
        waiting.add(1, ordering: .relaxed)
    }

    func adopted() { waiting.subtract(1, ordering: .relaxed) }

    func ended() {
        // Sequentially consistent: the acceptor sees this, or this sees that it waits.
        clients.subtract(1, ordering: .sequentiallyConsistent)
        vacancy.clientEnded()
    }
}

/// Notifies a waiting acceptor that a client has ended.
final class Vacancy: Sendable {
    private let isAwaited = Atomic<Bool>(false)
    private let told = Mutex<(@Sendable () -> Void)?>(nil)

    func await() { isAwaited.store(true, ordering: .sequentiallyConsistent) }

    /// - Parameter told: called on a worker's thread.
    func notify(_ told: @escaping @Sendable () -> Void) { self.told.withLock { $0 = told } }

    func clientEnded() {
        guard isAwaited.load(ordering: .sequentiallyConsistent),
            isAwaited.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        told.withLock { $0 }?()
    }
}

/// Chooses the worker with the fewest waiting, then the fewest clients; of equals, in turn.
struct WorkerChoice {
    private var next = 0

    /// - Parameter load: of a worker, by its number below `count`.
    mutating func pick(of count: Int, load: (Int) -> (waiting: Int, clients: Int)) -> Int {
        var best = next % count
        var least = load(best)
        for step in 1..<max(count, 1) where step < count {
            let number = (next + step) % count
            let candidate = load(number)
            if candidate < least { (best, least) = (number, candidate) }
        }
        next = best + 1
        return best
    }
}
