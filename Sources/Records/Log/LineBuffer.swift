import PinproxyTransport

/// Bytes of log lines. A buffer that has grown allocates nothing.
struct LineBuffer: Sendable {
    /// Only the first ``count`` bytes mean something.
    private var room: [UInt8]
    private(set) var count = 0

    init(capacity: Int) {
        room = Array(repeating: 0, count: capacity)
    }

    var held: ArraySlice<UInt8> { room[..<count] }

    mutating func cut(to place: Int) { count = min(place, count) }

    mutating func put(_ byte: UInt8) {
        makeRoom(1)
        room[count] = byte
        count += 1
    }

    mutating func put(_ text: String) { put(text.utf8.span) }

    mutating func put(_ bytes: Span<UInt8>) {
        makeRoom(bytes.count)
        let start = count
        var target = room.mutableSpan
        target.copy(bytes, to: start)
        count = start + bytes.count
    }

    mutating func put(_ bytes: [UInt8]) { put(bytes.span) }

    /// Bytes as they are, with up to two before and after them: see ``put(escaping:before:after:)``.
    mutating func put(_ bytes: Span<UInt8>, before: (bytes: UInt16, count: Int), after: (bytes: UInt16, count: Int)) {
        makeRoom(bytes.count + 6)
        let start = count
        var target = room.mutableSpan
        // Bytes beyond what counts are overwritten.
        target[start] = UInt8(truncatingIfNeeded: before.bytes)
        target[start + 1] = UInt8(truncatingIfNeeded: before.bytes >> 8)
        target.copy(bytes, to: start + before.count)
        let end = start + before.count + bytes.count
        target[end] = UInt8(truncatingIfNeeded: after.bytes)
        target[end + 1] = UInt8(truncatingIfNeeded: after.bytes >> 8)
        count = end + after.count
    }

    /// Text from outside, with the escapes of ``EscapedText``.
    /// - Parameter before: up to two bytes, the first in the low bits, and their number; `after` likewise.
    mutating func put(
        escaping text: Span<UInt8>, before: (bytes: UInt16, count: Int) = (0, 0),
        after: (bytes: UInt16, count: Int) = (0, 0)
    ) {
        makeRoom(text.count * EscapedText.longestEscape + 4)
        let start = count
        var target = room.mutableSpan
        // Bytes beyond what counts are overwritten.
        target[start] = UInt8(truncatingIfNeeded: before.bytes)
        target[start + 1] = UInt8(truncatingIfNeeded: before.bytes >> 8)
        let end = EscapedText.write(text, to: &target, at: start + before.count)
        target[end] = UInt8(truncatingIfNeeded: after.bytes)
        target[end + 1] = UInt8(truncatingIfNeeded: after.bytes >> 8)
        count = end + after.count
    }

    mutating func put(number value: some FixedWidthInteger) {
        if value < 0 { put(UInt8(ascii: "-")) }
        // The digits of UInt64.max.
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

    private mutating func makeRoom(_ more: Int) {
        if room.count - count < more { room.append(contentsOf: repeatElement(0, count: max(room.count, more))) }
    }
}
