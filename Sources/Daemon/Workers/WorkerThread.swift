import Clients
import EventLoop

/// A worker and the thread that it lives on, as seen from other threads.
final class WorkerThread: Sendable {
    let load: WorkerLoad
    /// For people.
    let name: String
    private let thread: LoopThread<Worker>

    private init(name: String, load: WorkerLoad, thread: LoopThread<Worker>) {
        self.name = name
        self.load = load
        self.thread = thread
    }

    /// Starts the thread and returns when its loop runs.
    /// - Parameter number: from 0.
    static func start(
        number: Int, context: ProxyContext, configuration: ActiveConfiguration, vacancy: Vacancy
    ) throws -> WorkerThread {
        let load = WorkerLoad(vacancy)
        let name = "worker \(number + 1)"
        let thread = try LoopThread.start(name, stackSize: 1 << 20) { loop in
            try Worker(loop: loop, number: number, shared: context, configuration: configuration, load: load)
        }
        return WorkerThread(name: name, load: load, thread: thread)
    }

    /// Runs `work` on the worker's thread.
    func perform(_ work: @escaping @Sendable (Worker) -> Void) { thread.perform(work) }

    /// Gives the worker a client's socket.
    func handOver(_ socket: consuming Descriptor, _ arrival: Arrival) {
        load.handedOver()
        let raw = socket.release()
        let isTaken = thread.perform { worker in
            worker.adopt(Descriptor(owning: raw), arrival)
        }
        guard !isTaken else { return }
        _ = Descriptor(owning: raw)
        load.adopted()
        load.ended()
    }

    /// Lets the thread end.
    func stop() { thread.stop() }
}
