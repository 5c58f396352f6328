internal import CShims
internal import Glibc

/// A counting semaphore of the system's (sem_overview(7)).
package final class Semaphore: Sendable {
    // Unsafe in name: the system guards it, and it doesn't move until the deinit.
    nonisolated(unsafe) fileprivate let raw: UnsafeMutablePointer<sem_t>

    package init() {
        raw = .allocate(capacity: 1)
        sem_init(raw, 0, 0)
    }

    deinit {
        sem_destroy(raw)
        raw.deallocate()
    }

    /// Lets one ``wait()`` return, now or later.
    package func signal() { sem_post(raw) }

    package func wait() {
        while sem_wait(raw) != 0, errno == EINTR {}
    }
}

/// A fault that ends the process: a failed check of Swift's, an access to memory that isn't there, an abort; not a kill.
package enum Crash {
    /// Such a signal now signals the semaphore, and ends the process after ``isSaved()`` or a second, while other
    /// threads run. Call once in a process, which keeps the semaphore.
    package static func wake(_ saver: Semaphore) {
        shim_crash_watch(Unmanaged.passRetained(saver).takeUnretainedValue().raw)
    }

    /// The signal that ends the process: `SIGSEGV`. Nil if none does.
    package static var signal: String? {
        let number = shim_crash_signal()
        return number == 0 ? nil : name(of: number)
    }

    /// Of such a signal.
    package static func name(of number: CInt) -> String {
        switch number {
        case SIGSEGV: "SIGSEGV"
        case SIGBUS: "SIGBUS"
        case SIGILL: "SIGILL"
        case SIGFPE: "SIGFPE"
        case SIGTRAP: "SIGTRAP"
        case SIGABRT: "SIGABRT"
        case SIGSYS: "SIGSYS"
        case let other: "signal \(other)"
        }
    }

    /// What could be saved is saved.
    package static func isSaved() { shim_crash_is_saved() }
}
