internal import Glibc

/// Where log lines go, and in which format. Shared by all threads without a lock: lines that are
/// ready are one write(2), which the kernel keeps whole on files and terminals, and on pipes up to
/// 4096 bytes.
package struct LogOutput: Sendable {
    package let format: LogFormat
    private let descriptor: CInt

    /// - Parameter descriptor: stays open for as long as anything may be logged; not owned.
    package init(descriptor: CInt, format: LogFormat) {
        self.descriptor = descriptor
        self.format = format
    }

    /// Standard error.
    /// - Parameter format: nil for text on a terminal and JSON lines otherwise.
    package static func standardError(format: LogFormat?) -> LogOutput {
        LogOutput(descriptor: STDERR_FILENO, format: format ?? (isatty(STDERR_FILENO) == 1 ? .text : .json))
    }

    /// A writer of lines for this output. Each thread has its own.
    package func lineWriter() -> EventLineWriter { EventLineWriter(format: format) }

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
