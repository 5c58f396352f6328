internal import CPinproxyShims
internal import Glibc

/// A POSIX semaphore (sem_overview(7)).
package final class Semaphore: Sendable {
    // Unsafe in name: the system guards it, and its address is stable.
    nonisolated(unsafe) fileprivate let raw: UnsafeMutablePointer<sem_t>

    package init() {
        raw = .allocate(capacity: 1)
        sem_init(raw, 0, 0)
    }

    deinit {
        sem_destroy(raw)
        raw.deallocate()
    }

    /// Releases one ``wait()``, now or later.
    package func signal() { sem_post(raw) }

    package func wait() {
        while sem_wait(raw) != 0, errno == EINTR {}
    }

    /// - Returns: false after that time, by a clock that only goes forward.
    package func wait(forNanoseconds nanoseconds: UInt64) -> Bool {
        let end = MonotonicTime.now().nanoseconds + nanoseconds
        var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
        while sem_clockwait(raw, CLOCK_MONOTONIC, &time) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }
}

/// A fault that ends the process: a trap, a bad memory access, an abort; not a kill.
package enum Crash {
    /// Such a signal signals the semaphore, and ends the process after ``isSaved()`` or a second, while other threads
    /// run. Call it once per process.
    package static func wake(_ saver: Semaphore) {
        shim_crash_watch(Unmanaged.passRetained(saver).takeUnretainedValue().raw)
    }

    /// The fatal signal, e.g. `SIGSEGV`, if any.
    package static var signal: String? {
        let number = shim_crash_signal()
        return number == 0 ? nil : name(of: number)
    }

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

    /// Call it when everything was saved.
    package static func isSaved() { shim_crash_is_saved() }
}
