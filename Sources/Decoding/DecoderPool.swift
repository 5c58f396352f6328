import PinproxyEventLoop
import PinproxySession

/// The decoder processes of one loop, and the bodies that wait for them. A process starts when a body waits and none is
/// free, and ends after some time without work. Failed starts are retried after growing pauses.
final class DecoderPool: DecoderProcessOwner {
    /// The pause between tries to start a process after failures. It doubles each time.
    private static let pause = (first: UInt64(100_000_000), longest: UInt64(30_000_000_000))
    private static let lookInterval: UInt64 = 1_000_000_000

    private let loop: EventLoop
    private let limits: DecoderLimits
    private let executable: String
    private let events: DecoderEvents
    private let tally: DecoderTally
    private var queue: FairQueue<DecoderJob>
    /// Places of waiting jobs in the queue, by job number.
    private var places: [UInt64: FairQueue<DecoderJob>.Number] = [:]
    /// Includes dying processes.
    private var processes: [ObjectIdentifier: DecoderProcess] = [:]
    private var running: [ObjectIdentifier: FairQueue<DecoderJob>.Number] = [:]
    private lazy var patience = Deadline(loop: loop, owner: self) { $0.losePatience() }
    /// Consecutive failed starts, the cause of the last, and the time of the next try.
    private var failures = (count: 0, cause: "", notBefore: MonotonicTime(nanoseconds: 0))
    private var isStopped = false

    /// - Parameter executable: the path of this program.
    init(loop: EventLoop, limits: DecoderLimits, executable: String, events: DecoderEvents, tally: DecoderTally) {
        (self.loop, self.limits, self.executable, self.events, self.tally) = (loop, limits, executable, events, tally)
        queue = FairQueue(capacity: limits.queuedBytes)
    }

    // MARK: Bodies

    func add(_ job: DecoderJob) {
        guard !isStopped else { return refuse(job, .unavailable("the proxy stops")) }
        switch queue.add(job, of: job.host, size: job.body.count + job.message.count) {
        case .refused: refuse(job, .noRoom)
        case .waits(let place, let displaced):
            places[job.number] = place
            for job in displaced { refuse(job, .noRoom) }
        }
        serve()
    }

    /// Drops a job. A running one keeps its host's place, so that disconnecting doesn't allow more jobs.
    func cancel(_ number: UInt64) {
        guard let place = places.removeValue(forKey: number) else { return }
        _ = queue.remove(place)
        note()
    }

    func stop() {
        isStopped = true
        refuseAll(.unavailable("the proxy stops"))
        for process in processes.values { process.dismiss() }
    }

    private func refuse(_ job: DecoderJob, _ failure: BodyWorkFailure) {
        places[job.number] = nil
        tally.count { $0.refused += 1 }
        job.fail(failure)
    }

    private func refuseAll(_ failure: BodyWorkFailure, where isChosen: (DecoderJob) -> Bool = { _ in true }) {
        for place in queue.numbers(where: isChosen) {
            if let job = queue.remove(place) { refuse(job, failure) }
        }
        note()
    }

    private func losePatience() {
        let (now, most) = (loop.now, limits.patience.nanoseconds)
        refuseAll(.noRoom) { now - $0.arrived >= most }
    }

    // MARK: Processes

    private var mayStart: Bool { processes.count < limits.processes && loop.now >= failures.notBefore }

    private func serve() {
        let share = max(limits.processes - 1, 1)
        while !isStopped, mayStart || processes.values.contains(where: \.isIdle),
            let (place, job) = queue.take(share: share)
        {
            places[job.number] = nil
            let idle = processes.values.filter(\.isIdle)
            // The most recently used process: the others end when they stay idle.
            if let process = idle.filter({ $0.longestBody >= job.longestBody }).max(by: { $0.idleSince < $1.idleSince })
            {
                running[ObjectIdentifier(process)] = place
                process.begin(job)
            } else {
                // It was started before the configuration allowed bodies this long.
                idle.first?.dismiss()
                start(for: job, place)
            }
        }
        // Nothing else would look again.
        if queue.count > 0, processes.isEmpty { refuseAll(.unavailable(failures.cause)) }
        note()
    }

    private func start(for job: DecoderJob, _ place: FairQueue<DecoderJob>.Number) {
        tally.count { $0.starts += 1 }
        do {
            let process = try DecoderProcess(executable, for: job, loop: loop, limits: limits, owner: self)
            processes[ObjectIdentifier(process)] = process
            running[ObjectIdentifier(process)] = place
        } catch {
            queue.finish(place)
            startFailed("\(error)")
            refuse(job, .unavailable("\(error)"))
        }
    }

    private func startFailed(_ cause: String) {
        tally.count { $0.failedStarts += 1 }
        if failures.count == 0 { events.unavailable?(cause) }
        let pause = min(Self.pause.first << UInt64(min(failures.count, 16)), Self.pause.longest)
        failures = (failures.count + 1, cause, loop.now.advanced(byNanoseconds: pause))
    }

    private func started() {
        guard failures.count > 0 else { return }
        failures = (0, "", MonotonicTime(nanoseconds: 0))
        events.availableAgain?()
    }

    private func note() {
        tally.count { [processes, queue] in
            $0.processes = processes.values.map(\.identifier)
            $0.waiting = queue.count
        }
        if queue.count > 0, !patience.isSet { patience.set(afterNanoseconds: Self.lookInterval) }
    }

    // MARK: Events of processes

    func isIdle(_ process: DecoderProcess) {
        finish(process)
        tally.count { $0.done += 1 }
        started()
        serve()
    }

    func fails(_ process: DecoderProcess, _ failure: BodyWorkFailure, host: String?, wasReady: Bool, output: [UInt8]) {
        finish(process)
        guard wasReady else {
            tally.count { $0.refused += 1 }
            if case .unavailable(let cause) = failure { startFailed(cause) }
            return
        }
        started()
        tally.count { if case .timedOut = failure { $0.timedOut += 1 } else { $0.failed += 1 } }
        events.failed?(
            DecoderEvents.Incident(
                host: host, failure: failure, process: process.identifier,
                output: String(decoding: output, as: UTF8.self)))
    }

    func isGone(_ process: DecoderProcess) {
        finish(process)
        processes[ObjectIdentifier(process)] = nil
        serve()
    }

    private func finish(_ process: DecoderProcess) {
        if let place = running.removeValue(forKey: ObjectIdentifier(process)) { queue.finish(place) }
    }
}
