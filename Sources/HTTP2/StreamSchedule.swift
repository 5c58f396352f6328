/// The order of streams with data to send (RFC 9218 section 10). More urgent streams come first. Within an urgency,
/// incremental streams alternate frame by frame; the others share one turn, in the order of their requests.
package struct StreamSchedule: Sendable {
    fileprivate struct Level: Sendable {
        /// Incremental streams in order; 0 is the shared turn of the others.
        var turns: [Int32] = []
        /// Index of the next turn.
        var first = 0
        /// Ascending.
        var inOrder: [Int32] = []
    }

    private var levels = [Level](repeating: Level(), count: 8)
    /// Bit n: level n has a stream.
    private var occupied: UInt8 = 0

    package init() {}

    package var isEmpty: Bool { occupied == 0 }

    /// The stream that comes next.
    package var first: HTTP2StreamID? {
        guard occupied != 0 else { return nil }
        let urgency = occupied.trailingZeroBitCount
        let turn = levels[urgency].turns[levels[urgency].first]
        return HTTP2StreamID(turn == 0 ? levels[urgency].inOrder[0] : turn)
    }

    /// Adds a stream that isn't in it.
    package mutating func insert(_ stream: HTTP2StreamID, _ priority: HTTP2Priority) {
        let urgency = Int(priority.urgency)
        occupied |= 1 << priority.urgency
        if priority.isIncremental { return levels[urgency].turns.append(stream.rawValue) }
        if levels[urgency].inOrder.isEmpty { levels[urgency].turns.append(0) }
        let place = levels[urgency].inOrder.firstIndex { $0 > stream.rawValue } ?? levels[urgency].inOrder.endIndex
        levels[urgency].inOrder.insert(stream.rawValue, at: place)
    }

    /// Takes out the stream that comes next.
    package mutating func removeFirst() -> HTTP2StreamID? {
        guard let stream = first else { return nil }
        let urgency = occupied.trailingZeroBitCount
        let turn = levels[urgency].turns[levels[urgency].first]
        levels[urgency].advance()
        if turn == 0 {
            levels[urgency].inOrder.removeFirst()
            if !levels[urgency].inOrder.isEmpty { levels[urgency].turns.append(0) }
        }
        if levels[urgency].isEmpty { occupied &= ~(1 << UInt8(urgency)) }
        return stream
    }

    /// Takes out a stream that was inserted with this priority.
    package mutating func remove(_ stream: HTTP2StreamID, _ priority: HTTP2Priority) {
        let urgency = Int(priority.urgency)
        if priority.isIncremental {
            levels[urgency].removeTurn(stream.rawValue)
        } else if let place = levels[urgency].inOrder.firstIndex(of: stream.rawValue) {
            levels[urgency].inOrder.remove(at: place)
            if levels[urgency].inOrder.isEmpty { levels[urgency].removeTurn(0) }
        }
        if levels[urgency].isEmpty { occupied &= ~(1 << priority.urgency) }
    }
}

/// Selects the streams to send next, in the order of ``StreamSchedule``.
package struct SendingTurn: Sendable {
    private var urgency = UInt8.max
    /// The first stream that isn't incremental.
    private var first = Int32.max

    package init() {}

    package mutating func add(_ stream: HTTP2StreamID, _ priority: HTTP2Priority) {
        if priority.urgency < urgency { (urgency, first) = (priority.urgency, .max) }
        if priority.urgency == urgency, !priority.isIncremental { first = min(first, stream.rawValue) }
    }

    package func includes(_ stream: HTTP2StreamID, _ priority: HTTP2Priority) -> Bool {
        priority.urgency == urgency && (priority.isIncremental || stream.rawValue == first)
    }
}

extension StreamSchedule.Level {
    fileprivate var isEmpty: Bool { first == turns.count }

    /// Drops the first turn; compacts the array when most of it is used up.
    fileprivate mutating func advance() {
        first += 1
        if isEmpty {
            turns.removeAll(keepingCapacity: true)
            first = 0
        } else if first > 64, first > turns.count - first {
            turns.removeFirst(first)
            first = 0
        }
    }

    fileprivate mutating func removeTurn(_ turn: Int32) {
        guard let place = turns[first...].firstIndex(of: turn) else { return }
        if place == first { return advance() }
        turns.remove(at: place)
    }
}
