internal import Glibc

/// Where log lines go. Shared by all threads without a lock: each line is one write(2), which the
/// kernel keeps whole on files and terminals, and on pipes up to 4096 bytes.
package struct LogOutput: Sendable {
    private let descriptor: CInt

    /// - Parameter descriptor: stays open for as long as anything may be logged; not owned.
    package init(descriptor: CInt) {
        self.descriptor = descriptor
    }

    package static let standardError = LogOutput(descriptor: STDERR_FILENO)

    package var isTerminal: Bool { isatty(descriptor) == 1 }

    /// Writes whole lines. What can't be written is dropped: a log that nobody reads, or that is
    /// slow, must not stop the proxy.
    package func write(_ lines: [UInt8]) {
        // Once round, unless a signal or a full pipe cuts the write short.
        var rest = lines[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }
}
