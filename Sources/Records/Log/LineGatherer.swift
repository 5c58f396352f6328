internal import Synchronization

/// Whole lines of one thread, on their way to the log together. Only a crash makes another thread look at them.
package final class LineGatherer: Sendable {
    private struct Lines {
        var bytes: [UInt8] = []
        var count = 0
    }

    private let lines = Mutex(Lines())

    /// Adds what a writer holds.
    /// - Returns: the bytes that wait.
    func add(_ writer: inout EventLineWriter) -> Int {
        lines.withLock { lines in
            writer.drain { bytes, count in
                lines.bytes.append(contentsOf: bytes)
                lines.count += count
            }
            return lines.bytes.count
        }
    }

    /// Gives all that waits away, and keeps the room.
    func drain(to take: (ArraySlice<UInt8>, Int) -> Void) {
        lines.withLock { lines in
            guard lines.count > 0 else { return }
            take(lines.bytes[...], lines.count)
            lines.bytes.removeAll(keepingCapacity: true)
            lines.count = 0
        }
    }

    /// What waits, for the last time; nil while the thread adds to it, and for good if it has crashed in that.
    func last() -> [UInt8]? { lines.withLockIfAvailable { $0.bytes } }
}
