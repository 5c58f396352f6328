import Synchronization

/// How much a worker has to do, as seen by other threads.
final class WorkerLoad: Sendable {
    private let clients = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let taken = Atomic<Int>(0)
    private let vacancy: Vacancy

    init(_ vacancy: Vacancy) {
        self.vacancy = vacancy
    }

    /// Clients, each counted once, from being handed over until they are gone.
    var count: Int { clients.load(ordering: .sequentiallyConsistent) }
    /// Those of them that the worker hasn't taken yet: of one that stalls there are some, always.
    var waitingCount: Int { waiting.load(ordering: .relaxed) }

    /// Requests that it has begun, as it last told.
    var requests: Int { taken.load(ordering: .relaxed) }

    func tell(requests: Int) { taken.store(requests, ordering: .relaxed) }

    func handedOver() {
        clients.add(1, ordering: .relaxed)
        waiting.add(1, ordering: .relaxed)
    }

    func adopted() { waiting.subtract(1, ordering: .relaxed) }

    func ended() {
        // In one order with the acceptor's question for room: it sees this, or this sees that it waits.
        clients.subtract(1, ordering: .sequentiallyConsistent)
        vacancy.clientEnded()
    }
}

/// Tells the acceptor that a client has gone, if it waits for that.
final class Vacancy: Sendable {
    private let isAwaited = Atomic<Bool>(false)
    private let told = Mutex<(@Sendable () -> Void)?>(nil)

    func await() { isAwaited.store(true, ordering: .sequentiallyConsistent) }

    /// - Parameter told: called on the thread of a worker.
    func notify(_ told: @escaping @Sendable () -> Void) { self.told.withLock { $0 = told } }

    func clientEnded() {
        guard isAwaited.load(ordering: .sequentiallyConsistent),
            isAwaited.exchange(false, ordering: .sequentiallyConsistent)
        else { return }
        told.withLock { $0 }?()
    }
}

/// Whom a client is handed to: the worker with the fewest clients of those that have taken all; of equals, in turn.
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
