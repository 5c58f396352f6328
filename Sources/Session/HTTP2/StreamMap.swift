import HTTP2

/// The streams of a connection by their numbers: open addressing with a hash of one multiplication, since several look-ups are made
/// for each exchange.
struct StreamMap {
    private var slots: [HTTP2Stream?] = Array(repeating: nil, count: 16)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private func home(of id: HTTP2StreamID) -> Int {
        // Numbers are odd, and mostly in sequence.
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

    /// Adds a stream whose number isn't in it.
    mutating func insert(_ stream: HTTP2Stream) {
        if count * 2 >= slots.count { grow() }
        var slot = home(of: stream.id)
        while slots[slot] != nil { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = stream
        count += 1
    }

    /// Removes a stream; false: it isn't in it.
    mutating func remove(_ id: HTTP2StreamID) -> Bool {
        guard var hole = slot(of: id) else { return false }
        slots[hole] = nil
        count -= 1
        // What was put after it because it was there moves up.
        var next = (hole + 1) & (slots.count - 1)
        while let stream = slots[next] {
            let distance = (next - home(of: stream.id)) & (slots.count - 1)
            if distance >= (next - hole) & (slots.count - 1) {
                slots[hole] = stream
                slots[next] = nil
                hole = next
            }
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
