import Dispatch
import EventLoop
package import Serialization
import Synchronization

/// Does work on bodies on threads of this process.
///
/// As many at one time as half of the processors, and at least one.
package final class ThreadExecutor: BodyExecutor {
    private struct Job: Sendable {
        let work: @Sendable () -> Void
        /// It is given up before it began.
        let refuse: @Sendable () -> Void
    }

    private struct State {
        var queue: FairQueue<Job>
        var threads = 0
    }

    private let most: Int
    private let state: Mutex<State>
    private let threads = DispatchQueue(label: "pinproxy.bodies", qos: .utility, attributes: .concurrent)

    package init(threads: Int = max(1, Processors.available / 2), capacity: Int = 256 << 20) {
        most = threads
        state = Mutex(State(queue: FairQueue(capacity: capacity)))
    }

    package func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String,
        answer: @escaping @Sendable (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket {
        let job = Job {
            answer(.success(work.outcome(on: body)))
        } refuse: {
            answer(.failure(.noRoom))
        }
        let (admission, isThreadWanted) = state.withLock { state in
            let admission = state.queue.add(job, of: host, size: body.count)
            let isThreadWanted = state.threads < most && state.queue.count > 0
            if isThreadWanted { state.threads += 1 }
            return (admission, isThreadWanted)
        }
        if isThreadWanted { threads.async { [self] in workUntilNothingWaits() } }
        switch admission {
        case .refused:
            job.refuse()
            return BodyWorkTicket {}
        case .waits(let number, let displaced):
            for job in displaced { job.refuse() }
            return BodyWorkTicket { [weak self] in self?.cancel(number) }
        }
    }

    private func cancel(_ number: FairQueue<Job>.Number) {
        // Released outside of the lock.
        _ = state.withLock { $0.queue.remove(number) }
    }

    private func workUntilNothingWaits() {
        var done: FairQueue<Job>.Number?
        while true {
            let next = state.withLock { state in
                if let done { state.queue.finish(done) }
                let next = state.queue.take(share: most)
                if next == nil { state.threads -= 1 }
                return next
            }
            guard let next else { return }
            next.job.work()
            done = next.number
        }
    }
}
