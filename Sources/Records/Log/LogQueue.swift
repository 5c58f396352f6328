/// The lines that wait to be written: bounded, in the order in which they were handed over.
///
/// Two buffers change places: while the writer empties one, the threads that log fill the other. Once both
/// have grown, nothing is allocated, and no thread holds the lock for longer than it takes to copy its lines.
struct LogQueue {
    let capacity: Int
    private var waiting: [UInt8] = []
    /// Lines that found no room since the writer came last.
    private var dropped = 0
    private var writerSleeps = false
    private(set) var isClosed = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Takes whole lines, all or none. After a drop it drops all until the writer comes: the log has one known gap.
    /// - Returns: whether the writer has to be woken.
    mutating func add(_ lines: ArraySlice<UInt8>, count: Int) -> Bool {
        guard !isClosed else { return false }
        guard dropped == 0, waiting.count + lines.count <= capacity else {
            dropped += count
            return false
        }
        waiting.append(contentsOf: lines)
        return wake()
    }

    /// No more lines are taken.
    /// - Returns: whether the writer has to be woken.
    mutating func close() -> Bool {
        isClosed = true
        return wake()
    }

    private mutating func wake() -> Bool {
        defer { writerSleeps = false }
        return writerSleeps
    }

    /// All that waits, in a crash.
    mutating func takeLast() -> [UInt8] {
        defer { waiting = [] }
        return waiting
    }

    /// Gives the writer all lines for its empty buffer. If there are none, the writer is to sleep until it is woken.
    /// - Returns: how many lines are missing after those.
    mutating func take(into empty: inout [UInt8]) -> Int {
        swap(&waiting, &empty)
        defer { dropped = 0 }
        writerSleeps = empty.isEmpty
        return dropped
    }
}
