/// Notices for a supervisor, on the daemon's main thread.
package struct DaemonNotices {
    package var ready: () -> Void = {}
    /// A reload has begun; ``ready`` follows in any case.
    package var reloading: () -> Void = {}
    /// Clients are no longer accepted.
    package var stopping: () -> Void = {}
    /// Every thread's loop is running. Called each ``aliveNanoseconds``, with one human-readable line.
    package var alive: (String) -> Void = { _ in }
    package var aliveNanoseconds: UInt64 = 10_000_000_000
    /// A listening socket may be kept for the next process under this name.
    package var listening: (CInt, String) -> Void = { _, _ in }
    package var notListening: (String) -> Void = { _ in }

    /// A socket to the starter of the proxy (`pinproxy exec --start`), which ends it.
    package var starter: CInt?
    /// A socket to the service's main process, which asks for a handover (``SupervisorWord``).
    package var supervisor: CInt?
    /// The next proxy may use the state directory.
    package var handedOver: () -> Void = {}

    package init() {}

    init(handedOver: @escaping () -> Void) { self.handedOver = handedOver }
}
