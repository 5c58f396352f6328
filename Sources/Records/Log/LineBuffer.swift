/// Bytes of log lines. Each value takes one look at the room that is left; a buffer that has grown allocates nothing.
struct LineBuffer: Sendable {
    /// What it holds is in front; what is behind is of no meaning.
    private var room: [UInt8]
    private(set) var count = 0

    init(capacity: Int) {
        room = Array(repeating: 0, count: capacity)
    }

    var held: ArraySlice<UInt8> { room[..<count] }

    /// Forgets all from the place on, but keeps the room.
    mutating func cut(to place: Int) { count = min(place, count) }

    mutating func put(_ byte: UInt8) {
        makeRoom(1)
        room[count] = byte
        count += 1
    }

    mutating func put(_ text: String) { put(text.utf8.span) }

    mutating func put(_ bytes: Span<UInt8>) {
        makeRoom(bytes.count)
        copy(bytes, to: count)
        count += bytes.count
    }

    mutating func put(_ bytes: [UInt8]) { put(bytes.span) }

    /// Bytes as they are, with up to two before and behind them: see ``put(escaping:before:after:)``.
    mutating func put(_ bytes: Span<UInt8>, before: (bytes: UInt16, count: Int), after: (bytes: UInt16, count: Int)) {
        makeRoom(bytes.count + 6)
        let start = count
        var front = room.mutableSpan
        // What is beyond what counts is written over.
        front[start] = UInt8(truncatingIfNeeded: before.bytes)
        front[start + 1] = UInt8(truncatingIfNeeded: before.bytes >> 8)
        copy(bytes, to: start + before.count)
        let end = start + before.count + bytes.count
        var back = room.mutableSpan
        back[end] = UInt8(truncatingIfNeeded: after.bytes)
        back[end + 1] = UInt8(truncatingIfNeeded: after.bytes >> 8)
        count = end + after.count
    }

    /// Text from outside, with the escapes of ``EscapedText``.
    /// - Parameters:
    ///   - before: up to two bytes that stand before it, the first in the low bits; and how many these are.
    ///   - after: the same, behind it.
    mutating func put(
        escaping text: Span<UInt8>, before: (bytes: UInt16, count: Int) = (0, 0), after: (bytes: UInt16, count: Int) = (0, 0)
    ) {
        makeRoom(text.count * EscapedText.longestEscape + 4)
        let start = count
        var target = room.mutableSpan
        // What is beyond what counts is written over.
        target[start] = UInt8(truncatingIfNeeded: before.bytes)
        target[start + 1] = UInt8(truncatingIfNeeded: before.bytes >> 8)
        let end = EscapedText.write(text, to: &target, at: start + before.count)
        target[end] = UInt8(truncatingIfNeeded: after.bytes)
        target[end + 1] = UInt8(truncatingIfNeeded: after.bytes >> 8)
        count = end + after.count
    }

    mutating func put(number value: some FixedWidthInteger) {
        if value < 0 { put(UInt8(ascii: "-")) }
        // Those of UInt64.max.
        makeRoom(20)
        let start = count
        var target = room.mutableSpan
        var rest = UInt64(value.magnitude)
        var end = start
        repeat {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            target[end] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
            rest = quotient
            end += 1
        } while rest > 0
        var (low, high) = (start, end - 1)
        while low < high {
            target.swapAt(low, high)
            (low, high) = (low + 1, high - 1)
        }
        count = end
    }

    /// Into room that is there.
    private mutating func copy(_ bytes: Span<UInt8>, to place: Int) {
        bytes.withUnsafeBytes { source in
            room.withUnsafeMutableBytes { UnsafeMutableRawBufferPointer(rebasing: $0[place...]).copyMemory(from: source) }
        }
    }

    private mutating func makeRoom(_ more: Int) {
        if room.count - count < more { room.append(contentsOf: repeatElement(0, count: max(room.count, more))) }
    }
}
