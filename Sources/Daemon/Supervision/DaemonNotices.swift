/// What a supervisor is told, on the daemon's main thread.
package struct DaemonNotices {
    /// Clients are accepted.
    package var ready: () -> Void = {}
    /// A reload has begun; ``ready`` follows when it is over, however it went.
    package var reloading: () -> Void = {}
    /// No more clients are accepted.
    package var stopping: () -> Void = {}
    /// Every thread's loop turns; called as often as ``aliveNanoseconds`` says, with one line for people.
    package var alive: (String) -> Void = { _ in }
    package var aliveNanoseconds: UInt64 = 10_000_000_000
    /// A socket listens that may be kept for the next process, under this name.
    package var listening: (CInt, String) -> Void = { _, _ in }
    /// It does not any more.
    package var notListening: (String) -> Void = { _ in }

    /// A socket to whoever has started the proxy for its own run (`pinproxy exec --start`), and ends it.
    package var starter: CInt?
    /// A socket to the main process of the service, which asks for a handover (``SupervisorWord``).
    package var supervisor: CInt?
    /// Nothing of the state directory is used any more: the next proxy may have it.
    package var handedOver: () -> Void = {}

    package init() {}

    init(handedOver: @escaping () -> Void) { self.handedOver = handedOver }
}
