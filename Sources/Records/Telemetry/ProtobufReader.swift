/// Reads the fields of a message of Protocol Buffers, from a peer that may send anything.
package struct ProtobufReader {
    package enum Value: Equatable {
        case varint(UInt64)
        case fixed
        case bytes(ArraySlice<UInt8>)
    }

    private var rest: ArraySlice<UInt8>
    /// Whether the bytes read so far aren't a message.
    package private(set) var isBroken = false

    package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    /// Nil: there is no further one, or the message is broken.
    package mutating func next() -> (number: UInt64, value: Value)? {
        guard !isBroken, !rest.isEmpty else { return nil }
        guard let tag = varint(), tag >> 3 > 0, let value = value(tag & 7) else {
            isBroken = true
            return nil
        }
        return (tag >> 3, value)
    }

    private mutating func value(_ type: UInt64) -> Value? {
        switch type {
        case 0: varint().map(Value.varint)
        case 1: take(8).map { _ in .fixed }
        case 2: varint().flatMap { Int(exactly: $0) }.flatMap { take($0) }.map(Value.bytes)
        case 5: take(4).map { _ in .fixed }
        default: nil
        }
    }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    private mutating func varint() -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }
}
