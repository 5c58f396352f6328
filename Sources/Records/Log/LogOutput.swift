internal import Dispatch
import Glibc
package import Logging
package import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxyTransport
internal import Synchronization

/// The destination of log lines, and their format.
///
/// A separate thread writes the lines, and alone waits for the reader. The queue is bounded (``LogQueue``): lines past
/// it are dropped and counted in a `log.dropped` line once the reader continues. Each thread's lines keep their order.
package final class LogOutput: Sendable {
    /// Sends a record with its fields' ranges to the journal; false if that failed. The output's thread waits.
    package typealias Journal = @Sendable (_ record: [UInt8], _ fields: [Range<Int>]) -> Bool

    /// Some 10,000 lines: a reader may pause for a moment under the heaviest load.
    private static let capacity = 4 << 20
    /// Room that is kept for the next lines; a stalled reader may have made it grow.
    private static let kept = 256 << 10

    /// Events for the collector.
    package let telemetry = TelemetryBuffer()
    private let settings: Atomic<Settings>
    private let descriptor: CInt
    private let journal: Journal?
    private let isJournalUsual: Bool
    private let queue: Mutex<LogQueue>
    private let gatherers = Mutex<[LineGatherer]>([])
    private let work = Semaphore()
    private let end = DispatchSemaphore(value: 0)
    /// Whether the last write ended within a line. Read by the writer's thread alone.
    private let isInsideLine = Atomic(false)

    /// - Parameters:
    ///   - descriptor: stays open until ``finish(within:)``; not owned.
    ///   - capacity: bytes that may wait.
    ///   - journal: takes records of the format ``LogFormat/journal``.
    ///   - isJournalUsual: whether ``apply(_:)`` takes `auto` for the journal.
    /// - Throws: if no thread can be started.
    package init(
        descriptor: CInt, format: LogFormat, level: Logger.Level = .info, capacity: Int = LogOutput.capacity,
        journal: Journal? = nil, isJournalUsual: Bool = false
    ) throws(SystemError) {
        self.descriptor = descriptor
        self.journal = journal
        self.isJournalUsual = isJournalUsual
        settings = Atomic(Settings(format: format, level: level))
        queue = Mutex(LogQueue(capacity: capacity))
        try startWriter()
    }

    /// Standard error, or the journal; `isJournalUsual`: standard error is connected to the journal.
    package static func standardError(
        _ settings: LogSettings, journal: Journal?, isJournalUsual: Bool
    ) throws(SystemError) -> LogOutput {
        let output = try LogOutput(
            descriptor: STDERR_FILENO, format: .json, journal: journal, isJournalUsual: isJournalUsual)
        output.apply(settings)
        return output
    }

    /// Sets the level and format of future events.
    package func apply(_ settings: LogSettings) {
        let format: LogFormat =
            switch settings.format {
            case .text: .text
            case .json: .json
            case .journald: .journal
            case .auto: isJournalUsual ? .journal : isatty(descriptor) == 1 ? .text : .json
            }
        self.settings.store(
            Settings(
                format: format == .journal && journal == nil ? .json : format, level: Logger.Level(settings.level)),
            ordering: .relaxed)
    }

    package var format: LogFormat { settings.load(ordering: .relaxed).format }
    /// Events of lower levels aren't logged.
    package var level: Logger.Level { settings.load(ordering: .relaxed).level }

    package func lineWriter() -> EventLineWriter { EventLineWriter(format: format) }

    /// For one thread. Its lines survive a crash.
    package func lineGatherer() -> LineGatherer {
        let gatherer = LineGatherer()
        gatherers.withLock { $0.append(gatherer) }
        return gatherer
    }

    /// Lets a crash wait until all lines are written (``Crash``). For one output of a process.
    package func outliveCrashes() { Crash.wake(work) }

    /// Never waits for the log's reader.
    package func write(_ lines: ArraySlice<UInt8>, count: Int) {
        if queue.withLock({ $0.add(lines, count: count) }) { work.signal() }
    }

    package func write(_ lines: inout EventLineWriter) { lines.drain { write($0, count: $1) } }

    package func write(_ lines: LineGatherer) { lines.drain { write($0, count: $1) } }

    /// Refuses further lines. Returns once all are written, or after `seconds`.
    package func finish(within seconds: Int = 2) {
        if queue.withLock({ $0.close() }) { work.signal() }
        // A second call returns at once.
        if end.wait(timeout: .now() + .seconds(seconds)) == .success { end.signal() }
    }

    // MARK: The writer's thread

    private func startWriter() throws(SystemError) {
        try SystemThread.start("log", stackSize: 128 << 10) { [self] in writeLines() }
    }

    private func writeLines() {
        var lines: [UInt8] = []
        var missing = 0
        var isLast = false
        while true {
            if !isLast, let signal = Crash.signal {
                isLast = true
                writeLast(signal)
            }
            let (dropped, isOver) = queue.withLock { ($0.take(into: &lines), $0.isClosed) }
            if lines.isEmpty {
                if isOver { break }
                work.wait()
                continue
            }
            missing += deliver(lines) + dropped
            if missing > 0, deliver(notice(of: missing)) == 0 { missing = 0 }
            if lines.capacity > Self.kept { lines = [] } else { lines.removeAll(keepingCapacity: true) }
        }
        end.signal()
    }

    /// All lines that the process still holds, and one about its end. A crashed thread may hold a lock.
    private func writeLast(_ signal: String) {
        let waiting = Self.tried { queue.withLockIfAvailable { $0.takeLast() } }
        if let waiting { _ = deliver(waiting) }
        for gatherer in Self.tried({ gatherers.withLockIfAvailable { $0 } }) ?? [] {
            if let lines = Self.tried({ gatherer.last() }) { _ = deliver(lines) }
        }
        var line = lineWriter()
        line.begin(event: "proxy.crash", level: .critical)
        line.field("signal", signal)
        line.field("effect", "the process ends here; connections are cut")
        line.end()
        _ = deliver(line.bytes)
        Crash.isSaved()
    }

    /// A running thread keeps the lock for less than a millisecond.
    private static func tried<Value>(_ attempt: () -> Value?) -> Value? {
        for _ in 0..<20 {
            if let value = attempt() { return value }
            usleep(1000)
        }
        return nil
    }

    private func notice(of missing: Int) -> [UInt8] {
        var line = lineWriter()
        line.begin(event: "log.dropped", level: .warning)
        line.field("lines", missing)
        line.field("cause", "the log's reader was too slow, or writing failed")
        line.end()
        return line.bytes
    }

    /// Writes lines to the descriptor, and records to the journal: a reload may have switched between them.
    private func deliver(_ lines: [UInt8]) -> Int {
        guard var next = lines.span.firstIndex(of: JournalRecord.start) else { return write(lines) }
        var missing = next > 0 ? write(Array(lines[..<next])) : 0
        while next < lines.count {
            if lines[next] == JournalRecord.start, let end = lines[next...].firstIndex(of: JournalRecord.end) {
                let (record, fields) = JournalRecord.fields(of: lines[(next + 1)..<end])
                if journal?(record, fields) != true { missing += 1 }
                next = end + 1
            } else {
                let end = lines[next...].firstIndex(of: JournalRecord.start) ?? lines.count
                missing += write(Array(lines[next..<end]))
                next = end
            }
        }
        return missing
    }

    /// - Returns: how many could not be written.
    private func write(_ lines: [UInt8]) -> Int {
        let newline = UInt8(ascii: "\n")
        // On a disk that was full, and has room again, no line may follow half of another.
        if isInsideLine.load(ordering: .relaxed) {
            guard send([newline]).isEmpty else { return lines.count { $0 == newline } }
            isInsideLine.store(false, ordering: .relaxed)
        }
        let rest = send(lines[...])
        if !rest.isEmpty, let last = lines[..<rest.startIndex].last, last != newline {
            isInsideLine.store(true, ordering: .relaxed)
        }
        return rest.count { $0 == newline }
    }

    /// - Returns: what could not be written.
    private func send(_ lines: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = lines
        while !rest.isEmpty {
            let written = Descriptor.write(rest, to: descriptor)
            if written > 0 {
                rest = rest.dropFirst(written)
            } else if written < 0, errno == EAGAIN {
                // Another process that shares the descriptor has made it non-blocking.
                var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&room, 1, -1)
            } else if written == 0 || errno != EINTR {
                break
            }
        }
        return rest
    }

    private struct Settings: AtomicRepresentable {
        let format: LogFormat
        let level: Logger.Level

        private static let formats: [LogFormat] = [.text, .json, .journal]
        private static let levels = Logger.Level.allCases

        static func encodeAtomicRepresentation(_ value: consuming Settings) -> UInt16.AtomicRepresentation {
            let format = formats.firstIndex(of: value.format) ?? 0
            let level = levels.firstIndex(of: value.level) ?? 0
            return UInt16.encodeAtomicRepresentation(UInt16(format << 8 | level))
        }

        static func decodeAtomicRepresentation(_ storage: consuming UInt16.AtomicRepresentation) -> Settings {
            let number = Int(UInt16.decodeAtomicRepresentation(storage))
            return Settings(format: formats[number >> 8], level: levels[number & 0xFF])
        }
    }
}

extension Logger.Level {
    fileprivate init(_ level: LogSettings.Level) { self = Self(rawValue: level.rawValue) ?? .info }
}
