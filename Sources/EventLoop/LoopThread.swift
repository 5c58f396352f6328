internal import Dispatch
internal import Synchronization

/// An object on a thread with its own loop, for use from other threads.
package final class LoopThread<Object>: Sendable {
    private let handle: EventLoop.Handle
    private let object: LoopBound<Object>

    private init(handle: EventLoop.Handle, object: LoopBound<Object>) {
        self.handle = handle
        self.object = object
    }

    /// Starts the thread and returns when the object is made.
    /// - Parameters:
    ///   - name: for debuggers, which show 15 bytes.
    ///   - make: called once, on the thread; its error is rethrown here.
    package static func start(
        _ name: String, stackSize: Int, make: @escaping @Sendable (EventLoop) throws -> Object
    ) throws -> LoopThread {
        let started = Started(make)
        try SystemThread.start(name, stackSize: stackSize) {
            let loop: EventLoop
            let object: Object
            do {
                loop = try EventLoop()
                object = try started.make(loop)
            } catch {
                return started.report(.failure(error))
            }
            started.report(.success(LoopThread(handle: loop.handle, object: LoopBound(object, on: loop))))
            // Held, so that it isn't released on another thread while the loop runs.
            withExtendedLifetime(object) { loop.run() }
        }
        return try started.wait()
    }

    /// Runs `work` on the thread. False if its loop has ended.
    @discardableResult
    package func perform(_ work: @escaping @Sendable (Object) -> Void) -> Bool {
        let object = object
        return handle.post { loop in work(object.value(on: loop)) }
    }

    package func stop() {
        handle.post { loop in loop.stop() }
    }

    private final class Started: Sendable {
        typealias Recipe = @Sendable (EventLoop) throws -> Object

        private let recipe: Mutex<Recipe?>
        private let made = Mutex<Result<LoopThread, any Error>?>(nil)
        private let isMade = DispatchSemaphore(value: 0)

        init(_ recipe: @escaping Recipe) { self.recipe = Mutex(recipe) }

        /// Call it once. It releases the closure, which the thread would otherwise keep.
        func make(_ loop: EventLoop) throws -> Object {
            let recipe = recipe.withLock { recipe in
                defer { recipe = nil }
                return recipe
            }
            return try recipe!(loop)
        }

        func report(_ result: Result<LoopThread, any Error>) {
            made.withLock { $0 = result }
            isMade.signal()
        }

        func wait() throws -> LoopThread {
            isMade.wait()
            return try made.withLock { try $0!.get() }
        }
    }
}
