internal import Glibc

/// A failed system call: its `errno` and name.
package struct SystemError: Error, Sendable, Hashable, CustomStringConvertible {
    package let code: CInt
    /// E.g. `connect`.
    package let call: String

    package init(code: CInt, call: String) {
        self.code = code
        self.call = call
    }

    static func last(_ call: String) -> SystemError {
        SystemError(code: errno, call: call)
    }

    /// No file descriptor is left in the process or the machine (EMFILE, ENFILE).
    package var isLackOfDescriptors: Bool { code == EMFILE || code == ENFILE }

    /// The process, its user or its control group has reached its limit of threads.
    package var isLackOfThreads: Bool { code == EAGAIN && call == "pthread_create" }

    /// No route to the address (ENETUNREACH).
    package var isLackOfRoute: Bool { code == ENETUNREACH }

    /// The error's text: `Connection refused`.
    package var reason: String {
        // strerror isn't thread-safe.
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
