import PinproxyHTTP2

/// The streams of a connection by their numbers. Each exchange looks several up, so the table has no costly hash. It
/// uses open addressing by the number, the nearest to their place first (Robin Hood): a removal moves as few as
/// possible. The numbers are apart from the objects, so that a search retains no other stream.
struct StreamMap {
    /// 0: vacant.
    private var numbers: [Int32] = Array(repeating: 0, count: 16)
    private var streams: [HTTP2Stream?] = Array(repeating: nil, count: 16)
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    private func home(of number: Int32) -> Int {
        // Numbers of one side are odd or even, and in sequence.
        Int(truncatingIfNeeded: UInt32(bitPattern: number) >> 1) & (numbers.count - 1)
    }

    private func slot(of id: HTTP2StreamID) -> Int? {
        var slot = home(of: id.rawValue)
        while numbers[slot] != 0 {
            if numbers[slot] == id.rawValue { return slot }
            slot = (slot + 1) & (numbers.count - 1)
        }
        return nil
    }

    subscript(id: HTTP2StreamID) -> HTTP2Stream? { slot(of: id).flatMap { streams[$0] } }

    /// Adds a stream. Its number must be new.
    mutating func insert(_ stream: HTTP2Stream) {
        if count * 2 >= numbers.count { grow() }
        count += 1
        var number = stream.id.rawValue
        var stream: HTTP2Stream? = stream
        var slot = home(of: number)
        var distance = 0
        while numbers[slot] != 0 {
            let itsDistance = self.distance(from: home(of: numbers[slot]), to: slot)
            if itsDistance < distance {
                swap(&numbers[slot], &number)
                swap(&streams[slot], &stream)
                distance = itsDistance
            }
            slot = (slot + 1) & (numbers.count - 1)
            distance += 1
        }
        numbers[slot] = number
        streams[slot] = stream
    }

    private func distance(from home: Int, to slot: Int) -> Int { (slot - home) & (numbers.count - 1) }

    /// Removes a stream; false: it isn't in the table.
    mutating func remove(_ id: HTTP2StreamID) -> Bool {
        guard var hole = slot(of: id) else { return false }
        numbers[hole] = 0
        streams[hole] = nil
        count -= 1
        // Displaced streams move up.
        var next = (hole + 1) & (numbers.count - 1)
        while numbers[next] != 0, home(of: numbers[next]) != next {
            numbers.swapAt(hole, next)
            streams.swapAt(hole, next)
            hole = next
            next = (next + 1) & (numbers.count - 1)
        }
        return true
    }

    private mutating func grow() {
        let old = streams
        numbers = Array(repeating: 0, count: 2 * old.count)
        streams = Array(repeating: nil, count: 2 * old.count)
        count = 0
        for case let stream? in old { insert(stream) }
    }

    /// All streams.
    var all: [HTTP2Stream] { streams.compactMap(\.self) }
}
