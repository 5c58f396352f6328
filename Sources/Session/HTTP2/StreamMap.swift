import HTTP2

/// The streams of a connection by their numbers. Each exchange looks several up, so this is a table without a costly
/// hash: open addressing by the number, the nearest to their place first (Robin Hood), so that a removal moves as few
/// as can be.
struct StreamMap {
    private var slots: [HTTP2Stream?] = Array(repeating: nil, count: 16)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private func home(of id: HTTP2StreamID) -> Int {
        // Those of one side are odd or even, and in sequence.
        Int(truncatingIfNeeded: UInt32(bitPattern: id.rawValue) >> 1) & (slots.count - 1)
    }

    private func slot(of id: HTTP2StreamID) -> Int? {
        var slot = home(of: id)
        while let stream = slots[slot] {
            if stream.id == id { return slot }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    subscript(id: HTTP2StreamID) -> HTTP2Stream? { slot(of: id).flatMap { slots[$0] } }

    /// Adds a stream. Its number must be new.
    mutating func insert(_ stream: HTTP2Stream) {
        if count * 2 >= slots.count { grow() }
        count += 1
        var stream = stream
        var slot = home(of: stream.id)
        var distance = 0
        while let other = slots[slot] {
            let itsDistance = self.distance(from: home(of: other.id), to: slot)
            if itsDistance < distance {
                slots[slot] = stream
                stream = other
                distance = itsDistance
            }
            slot = (slot + 1) & (slots.count - 1)
            distance += 1
        }
        slots[slot] = stream
    }

    private func distance(from home: Int, to slot: Int) -> Int { (slot - home) & (slots.count - 1) }

    /// Removes a stream; false: it isn't in it.
    mutating func remove(_ id: HTTP2StreamID) -> Bool {
        guard var hole = slot(of: id) else { return false }
        slots[hole] = nil
        count -= 1
        // Those that aren't in their place move up.
        var next = (hole + 1) & (slots.count - 1)
        while let stream = slots[next], home(of: stream.id) != next {
            slots[hole] = stream
            slots[next] = nil
            hole = next
            next = (next + 1) & (slots.count - 1)
        }
        return true
    }

    private mutating func grow() {
        let old = slots
        slots = Array(repeating: nil, count: 2 * old.count)
        count = 0
        for case let stream? in old { insert(stream) }
    }

    /// All of them.
    var all: [HTTP2Stream] { slots.compactMap(\.self) }
}
