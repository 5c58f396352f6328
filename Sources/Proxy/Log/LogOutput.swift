internal import Dispatch
internal import Foundation
internal import Logging
internal import Synchronization

/// Where log lines go, and in which format.
///
/// Whoever logs only hands its lines over: a thread of the output's own writes them, and is alone to wait for
/// who reads them. What waits is bounded (``LogQueue``); lines beyond are dropped, counted, and missed in a
/// `log.dropped` line as soon as the reader goes on. The lines of one thread keep their order.
package final class LogOutput: Sendable {
    /// Some 10,000 lines: a reader may pause for a moment under the heaviest load.
    private static let capacity = 4 << 20
    /// Room that is kept for the next lines; what a stalled reader has made grow beyond is given back.
    private static let kept = 256 << 10

    package let format: LogFormat
    private let descriptor: CInt
    private let queue: Mutex<LogQueue>
    private let work = DispatchSemaphore(value: 0)
    private let end = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - descriptor: stays open until ``finish(within:)``; not owned.
    ///   - capacity: bytes that may wait.
    package init(descriptor: CInt, format: LogFormat, capacity: Int = LogOutput.capacity) {
        self.descriptor = descriptor
        self.format = format
        queue = Mutex(LogQueue(capacity: capacity))
        startWriter()
    }

    /// Standard error.
    /// - Parameter format: nil for text on a terminal and JSON lines otherwise.
    package static func standardError(format: LogFormat?) -> LogOutput {
        LogOutput(descriptor: STDERR_FILENO, format: format ?? (isatty(STDERR_FILENO) == 1 ? .text : .json))
    }

    /// A writer of lines for this output. Each thread has its own.
    package func lineWriter() -> EventLineWriter { EventLineWriter(format: format) }

    /// Hands whole lines over. Never waits for whoever reads the log.
    package func write(_ lines: [UInt8], count: Int) {
        if queue.withLock({ $0.add(lines, count: count) }) { work.signal() }
    }

    /// Hands over what a writer has gathered.
    package func write(_ lines: inout EventLineWriter) { lines.drain { write($0, count: $1) } }

    /// Takes no more lines, and returns when those that wait are written; or, if nobody reads them, after
    /// `seconds`.
    package func finish(within seconds: Int = 2) {
        if queue.withLock({ $0.close() }) { work.signal() }
        // Whoever asks once more need not wait again.
        if end.wait(timeout: .now() + .seconds(seconds)) == .success { end.signal() }
    }

    // MARK: The writer's thread

    private func startWriter() {
        // A signal must find the thread that waits for it, and not this one.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        let thread = Thread { [self] in writeLines() }
        thread.name = "log"
        thread.stackSize = 128 << 10
        thread.start()
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private func writeLines() {
        var lines: [UInt8] = []
        var missing = 0
        while true {
            let (dropped, isOver) = queue.withLock { ($0.take(into: &lines), $0.isClosed) }
            if lines.isEmpty {
                if isOver { break }
                work.wait()
                continue
            }
            missing += write(lines) + dropped
            if missing > 0, write(notice(of: missing)) == 0 { missing = 0 }
            if lines.capacity > Self.kept { lines = [] } else { lines.removeAll(keepingCapacity: true) }
        }
        end.signal()
    }

    private func notice(of missing: Int) -> [UInt8] {
        var line = lineWriter()
        line.begin(event: "log.dropped", level: .warning)
        line.field("lines", missing)
        line.field("cause", "the log's reader was too slow, or writing failed")
        line.end()
        return line.bytes
    }

    /// Writes lines, however long their reader takes.
    /// - Returns: how many could not be written; the one that was cut is ended, if that works.
    private func write(_ lines: [UInt8]) -> Int {
        var rest = lines[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if written > 0 {
                rest = rest.dropFirst(written)
            } else if written < 0, errno == EAGAIN {
                // Whoever shares the descriptor has made it non-blocking.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            } else if written == 0 || errno != EINTR {
                // What is written next, once the disk has room again, must not follow half a line.
                if rest.startIndex > 0 { Glibc.write(descriptor, "\n", 1) }
                return rest.count { $0 == UInt8(ascii: "\n") }
            }
        }
        return 0
    }
}
