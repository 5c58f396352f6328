internal import Glibc

/// A system call that failed: the `errno` it left, and the call's name as people know it.
package struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    /// An `errno` value.
    package let code: CInt
    /// The call, for example `connect`.
    package let call: String

    package init(code: CInt, call: String) {
        self.code = code
        self.call = call
    }

    static func last(_ call: String) -> SystemError {
        SystemError(code: errno, call: call)
    }

    /// The process, or the whole machine, has no file descriptor left (EMFILE, ENFILE).
    package var isLackOfDescriptors: Bool { code == EMFILE || code == ENFILE }

    /// The process, its user or its control group has as many threads as it may have.
    package var isLackOfThreads: Bool { code == EAGAIN && call == "pthread_create" }

    /// The system has no route to the address (ENETUNREACH).
    package var isLackOfRoute: Bool { code == ENETUNREACH }

    /// What the code alone means: `Connection refused`.
    package var reason: String {
        // strerror_r instead of strerror: several loops may describe errors at once.
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, strerror_r(code, base, buffer.count) == 0 else {
                return "error \(code)"
            }
            return String(cString: base)
        }
    }

    /// `connect: Connection refused`
    package var description: String { "\(call): \(reason)" }
}
