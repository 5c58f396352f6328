package import Configuration
package import EventLoop
import HTTPWire
import Logging
import Security
package import Session

/// The `exchange` events of one worker: a line for each, gathered and handed over together.
/// No header values, no query strings, no bodies.
package final class AccessLog {
    /// Bytes that are handed over at once.
    private static let enough = 16 << 10
    /// How long a line waits for others. Each hand-over may wake the thread that writes, so that under load
    /// a request costs neither a system call nor an allocation of the log's.
    private static let gatheringNanoseconds: UInt64 = 10_000_000

    private let output: LogOutput
    private let loop: EventLoop
    private var line: EventLineWriter
    private let gatherer: LineGatherer
    private var isOn = true
    private lazy var deadline = Deadline(loop: loop, owner: self) { $0.flush() }

    package init(output: LogOutput, loop: EventLoop) {
        self.output = output
        self.loop = loop
        line = output.lineWriter()
        gatherer = output.lineGatherer()
    }

    package func configure(_ settings: LogSettings) {
        isOn = settings.access
        // By now the output has what the settings say.
        guard line.format != output.format else { return }
        flush()
        line = output.lineWriter()
    }

    package func write(_ record: borrowing TaskRecord, now: MonotonicTime) {
        // An intercepted CONNECT is told of by its requests, unless none can come.
        guard isOn, record.kind != .interception || record.failure != nil else { return }
        // One access to the line for all of it: each is checked.
        line.put(record, now: now)
        if gatherer.add(&line) > Self.enough {
            flush()
        } else if !deadline.isSet {
            deadline.set(afterNanoseconds: Self.gatheringNanoseconds)
        }
    }

    /// Hands over what was gathered.
    package func flush() {
        deadline.clear()
        output.write(gatherer)
    }
}
