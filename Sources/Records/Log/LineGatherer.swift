internal import Synchronization

/// Whole lines of one thread for the log. Only a crash makes another thread read them.
package final class LineGatherer: Sendable {
    private struct Lines {
        var bytes: [UInt8] = []
        var count = 0
    }

    private let lines = Mutex(Lines())

    /// - Returns: the number of waiting bytes.
    func add(_ writer: inout EventLineWriter) -> Int {
        lines.withLock { lines in
            writer.drain { bytes, count in
                lines.bytes.append(contentsOf: bytes)
                lines.count += count
            }
            return lines.bytes.count
        }
    }

    /// Hands over all waiting lines, and keeps the room.
    func drain(to take: (ArraySlice<UInt8>, Int) -> Void) {
        lines.withLock { lines in
            guard lines.count > 0 else { return }
            take(lines.bytes[...], lines.count)
            lines.bytes.removeAll(keepingCapacity: true)
            lines.count = 0
        }
    }

    /// After a crash. Nil: the thread is adding lines, or has crashed there.
    func last() -> [UInt8]? { lines.withLockIfAvailable { $0.bytes } }
}
