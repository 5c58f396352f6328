import PinproxyClients
import PinproxyEventLoop
import PinproxyRecords
import PinproxySession

struct WorkerMeasurement: Sendable {
    var counters: WorkerCounters
    /// Nanoseconds that the question waited for the worker's loop.
    var lag: UInt64
    var open = OpenConnections()
    var idleUpstreams = 0
    /// The part of ``idleUpstreams`` that speaks HTTP/2.
    var idleShared = 0
    var lookups = Resolver.Counts()
    var events: [RecentEvent] = []
}

extension Worker {
    func measurement(asked: MonotonicTime) -> WorkerMeasurement {
        var measurement = WorkerMeasurement(counters: context.counters, lag: MonotonicTime.now() - asked)
        measurement.open = openConnections
        measurement.idleUpstreams = context.session.pool.idleCount
        measurement.idleShared = context.session.pool.idleSharedCount
        measurement.lookups = context.lookups
        measurement.events = context.recent.all
        return measurement
    }
}

/// The latest answers of all workers.
struct ProxyMeasurement: Sendable {
    /// By worker; nil: it has never answered.
    var workers: [WorkerMeasurement?]
    /// Workers, from 0, that didn't answer in time.
    var silent: Set<Int>

    var counters: WorkerCounters {
        var sum = WorkerCounters()
        for case let worker? in workers { sum.add(worker.counters) }
        return sum
    }

    func sum(_ value: (WorkerMeasurement) -> Int) -> Int { workers.reduce(0) { $0 + ($1.map(value) ?? 0) } }

    /// The latest first.
    var events: [RecentEvent] {
        workers.flatMap { $0?.events ?? [] }.sorted { ($0.time, $0.number) > ($1.time, $1.number) }
    }
}

/// Asks the workers for their counts. On the main loop.
final class MetricsCollector {
    private let inquiry: WorkerInquiry
    private var last: [WorkerMeasurement?]

    init(_ inquiry: WorkerInquiry) {
        self.inquiry = inquiry
        last = Array(repeating: nil, count: inquiry.workers.count)
    }

    func collect(_ completion: @escaping (ProxyMeasurement) -> Void) {
        let asked = MonotonicTime.now()
        inquiry.ask {
            $0.measurement(asked: asked)
        } completion: { [self] answers in
            // A decreasing count would look like a restart.
            for case (let number, let answer?) in answers.enumerated() { last[number] = answer }
            completion(
                ProxyMeasurement(workers: last, silent: Set(answers.indices.filter { answers[$0] == nil })))
        }
    }
}
