import PinproxyEventLoop

extension SessionManager {
    /// Makes a session without blocking the executor, as ``init(configuration:hooks:)`` does: a separate thread reads
    /// the trust anchors.
    /// - Throws: ``SessionError/configuration(_:)`` for a wrong configuration.
    public static func start(
        configuration: SessionConfiguration = SessionConfiguration(), hooks: SessionHooks = SessionHooks()
    ) async throws(SessionError) -> SessionManager {
        let made: Result<SessionManager, SessionError> = await withCheckedContinuation { continuation in
            do {
                try SystemThread.start("pinproxy.start", stackSize: 1 << 20) {
                    continuation.resume(
                        returning: Result { () throws(SessionError) in
                            try SessionManager(configuration: configuration, hooks: hooks)
                        })
                }
            } catch {
                continuation.resume(returning: .failure(.system("\(error)")))
            }
        }
        return try made.get()
    }

    /// Ends the session after the running tasks, and returns when they have ended. If the waiting Swift task is
    /// cancelled, so are they.
    public func finish() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isAccepted = current.perform { $0.finishAndInvalidate { continuation.resume() } }
                if !isAccepted { continuation.resume() }
            }
        } onCancel: {
            invalidate()
        }
    }
}
