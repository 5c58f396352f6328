import Configuration
import EventLoop
import Foundation
import Session
import Synchronization

/// A worker and the thread that it lives on, as seen from other threads.
final class WorkerThread: Sendable {
    let load: WorkerLoad
    private let handle: EventLoop.Handle
    private let worker: LoopBound<Worker>

    private init(load: WorkerLoad, handle: EventLoop.Handle, worker: LoopBound<Worker>) {
        self.load = load
        self.handle = handle
        self.worker = worker
    }

    /// Starts the thread and returns when its loop runs.
    /// - Parameter clientEnded: called on the worker's thread whenever one of its clients has gone.
    static func start(
        number: Int, context: ProxyContext, configuration: ActiveConfiguration,
        clientEnded: @escaping @Sendable () -> Void
    ) throws -> WorkerThread {
        let started = Started()
        let thread = Thread {
            let loop: EventLoop
            do {
                loop = try EventLoop()
                let load = WorkerLoad(onEnd: clientEnded)
                let worker = try Worker(loop: loop, context: context, configuration: configuration, load: load)
                started.report(.success(WorkerThread(load: load, handle: loop.handle, worker: LoopBound(worker, on: loop))))
            } catch {
                return started.report(.failure(error))
            }
            loop.run()
        }
        thread.name = "worker \(number)"
        thread.stackSize = 1 << 20
        thread.start()
        return try started.wait()
    }

    /// Runs `work` on the worker's thread.
    func perform(_ work: @escaping @Sendable (Worker) -> Void) {
        let worker = worker
        handle.post { loop in work(worker.value(on: loop)) }
    }

    /// The worker itself, for code that runs on its loop.
    func worker(on loop: EventLoop) -> Worker { worker.value(on: loop) }

    func isOn(_ loop: EventLoop) -> Bool { worker.belongs(to: loop) }

    /// Lets the thread end.
    func stop() {
        handle.post { loop in loop.stop() }
    }

    private final class Started: Sendable {
        private let made = Mutex<Result<WorkerThread, any Error>?>(nil)
        private let isMade = DispatchSemaphore(value: 0)

        func report(_ result: Result<WorkerThread, any Error>) {
            made.withLock { $0 = result }
            isMade.signal()
        }

        func wait() throws -> WorkerThread {
            isMade.wait()
            return try made.withLock { try $0!.get() }
        }
    }
}
