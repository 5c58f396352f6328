public import PinnedSession
public import ServiceLifecycle

/// A `SessionManager` as a service of a `ServiceGroup`.
///
/// On graceful shutdown no new task begins, the running ones finish, and their connections are closed. Tasks that are
/// still in flight after the grace period are cancelled, and so are all if the group is.
///
/// A group shuts its services down in reverse order: list the session before the services that use it.
///
/// ```swift
/// let session = try await SessionManager.start()
/// let group = ServiceGroup(
///     services: [SessionService(session), server], gracefulShutdownSignals: [.sigterm], logger: logger)
/// try await group.run()
/// ```
public struct SessionService: Service {
    /// The session that ends with the group.
    public let session: SessionManager
    private let gracePeriod: Duration

    /// - Parameters:
    ///   - session: see ``session``.
    ///   - gracePeriod: for tasks to finish, at most.
    public init(_ session: SessionManager, gracePeriod: Duration = .seconds(30)) {
        self.session = session
        self.gracePeriod = gracePeriod
    }

    /// Waits for the shutdown, and returns when the last task has ended.
    public func run() async throws {
        do {
            try await gracefulShutdown()
        } catch {
            session.invalidate()
            await session.finish()
            throw error
        }
        await withTaskGroup(of: Void.self) { [session, gracePeriod] group in
            group.addTask { await session.finish() }
            group.addTask {
                // Cut short if the group is cancelled, or all tasks have ended.
                try? await Task.sleep(for: gracePeriod)
                session.invalidate()
            }
            await group.next()
            group.cancelAll()
        }
    }
}
