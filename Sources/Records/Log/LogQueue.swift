/// The bounded queue of lines. Two buffers change places: while the writer empties one, threads fill the other. Once
/// both have grown, nothing is allocated, and the lock is held only to copy lines.
struct LogQueue {
    let capacity: Int
    private var waiting: [UInt8] = []
    /// Dropped lines since the last write.
    private var dropped = 0
    private var writerSleeps = false
    private(set) var isClosed = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// Takes whole lines, all or none. After a drop it drops all until the next write: the log has one known gap.
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

    /// Refuses further lines.
    /// - Returns: whether the writer has to be woken.
    mutating func close() -> Bool {
        isClosed = true
        return wake()
    }

    private mutating func wake() -> Bool {
        defer { writerSleeps = false }
        return writerSleeps
    }

    mutating func takeLast() -> [UInt8] {
        defer { waiting = [] }
        return waiting
    }

    /// Swaps the lines for the writer's empty buffer. Without lines, the writer sleeps until it is woken.
    /// - Returns: how many lines are missing after those.
    mutating func take(into empty: inout [UInt8]) -> Int {
        swap(&waiting, &empty)
        defer { dropped = 0 }
        writerSleeps = empty.isEmpty
        return dropped
    }
}
