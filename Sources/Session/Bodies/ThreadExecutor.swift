import PinproxyEventLoop
package import PinproxySerialization
import Synchronization

/// Reports that no thread for bodies can be made.
package enum ThreadLack: Sendable {
    /// Bodies refused; the cause on the first report.
    case refused(Int, cause: String?)
    case over
}

/// Works on bodies on threads of this process: half as many as processors, and at least one.
package final class ThreadExecutor: BodyExecutor {
    private struct Job: Sendable {
        /// Does the work, and returns the call that reports the result.
        let work: @Sendable () -> @Sendable () -> Void
        let refuse: @Sendable (BodyWorkFailure) -> Void
    }

    private struct State {
        var queue: FairQueue<Job>
        var threads = 0
        var free: [WorkQueue] = []
        /// The last attempt to make a thread failed.
        var isLacking = false
    }

    private let most: Int
    private let state: Mutex<State>
    private let lacking: (@Sendable (ThreadLack) -> Void)?

    /// - Parameter lacking: called on any thread when a thread can't be made, and when one can be made again.
    package init(
        threads: Int = max(1, Processors.available / 2), capacity: Int = 256 << 20,
        lacking: (@Sendable (ThreadLack) -> Void)? = nil
    ) {
        most = threads
        self.lacking = lacking
        state = Mutex(State(queue: FairQueue(capacity: capacity)))
    }

    package func perform<Work: BodyWork>(
        _ work: Work, on body: [UInt8], of host: String,
        answer: @escaping @Sendable (Result<Work.Outcome, BodyWorkFailure>) -> Void
    ) -> BodyWorkTicket {
        let job = Job {
            let outcome = work.outcome(on: body)
            return { answer(.success(outcome)) }
        } refuse: {
            answer(.failure($0))
        }
        let (admission, isThreadWanted) = state.withLock { state in
            let admission = state.queue.add(job, of: host, size: body.count)
            let isThreadWanted = state.threads < most && state.queue.count > 0
            if isThreadWanted { state.threads += 1 }
            return (admission, isThreadWanted)
        }
        if isThreadWanted { startWork() }
        switch admission {
        case .refused:
            job.refuse(.noRoom)
            return BodyWorkTicket {}
        case .waits(let number, let displaced):
            for job in displaced { job.refuse(.noRoom) }
            return BodyWorkTicket { [weak self] in self?.cancel(number) }
        }
    }

    private func cancel(_ number: FairQueue<Job>.Number) {
        // Released outside of the lock.
        _ = state.withLock { $0.queue.remove(number) }
    }

    /// Wakes an idle thread or makes one. Where none can be made, jobs wait for the running threads, or are refused.
    private func startWork() {
        do throws(SystemError) {
            let free = state.withLock { $0.free.popLast() }
            let queue = if let free { free } else { try makeThread() }
            queue.async { [self] in workUntilNothingWaits(on: queue) }
        } catch {
            let (refused, isNew): ([Job], Bool) = state.withLock { state in
                state.threads -= 1
                guard state.threads == 0 else { return ([], false) }
                defer { state.isLacking = true }
                var jobs: [Job] = []
                while let next = state.queue.take(share: most) {
                    state.queue.finish(next.number)
                    jobs.append(next.job)
                }
                return (jobs, !state.isLacking)
            }
            if !refused.isEmpty { lacking?(.refused(refused.count, cause: isNew ? "\(error)" : nil)) }
            for job in refused { job.refuse(.unavailable("\(error)")) }
        }
    }

    private func makeThread() throws(SystemError) -> WorkQueue {
        let queue = try WorkQueue("bodies", isBackground: true)
        let isOver = state.withLock { state in
            defer { state.isLacking = false }
            return state.isLacking
        }
        if isOver { lacking?(.over) }
        return queue
    }

    private func workUntilNothingWaits(on queue: WorkQueue) {
        while true {
            let next = state.withLock { state in
                let next = state.queue.take(share: most)
                if next == nil {
                    state.threads -= 1
                    state.free.append(queue)
                }
                return next
            }
            guard let next else { return }
            let answer = next.job.work()
            // Before the report, so that its receiver finds the room free.
            state.withLock { $0.queue.finish(next.number) }
            answer()
        }
    }
}
