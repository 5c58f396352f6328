/// A priority of RFC 9218.
package struct HTTP2Priority: Hashable, Sendable, CustomStringConvertible {
    /// 0, the most urgent, to 7.
    package let urgency: UInt8
    /// Whether the response can be processed in parts. Incremental streams share the connection; others are sent one
    /// after the other.
    package let isIncremental: Bool

    package init(urgency: UInt8 = 3, isIncremental: Bool = false) {
        self.urgency = min(urgency, 7)
        self.isIncremental = isIncremental
    }

    /// The priority of a stream without a signal. Unlike RFC 9218 section 4 it is incremental: for a client that sends
    /// no priorities, one long response would delay all others.
    package static let unspecified = HTTP2Priority(isIncremental: true)

    /// The field value.
    package var description: String { isIncremental ? "u=\(urgency), i" : "u=\(urgency)" }

    /// Parses a Priority field or PRIORITY_UPDATE; nil if it isn't a dictionary (RFC 8941 section 3.2). Unknown members
    /// and values of the wrong type or range are ignored (RFC 9218 section 4).
    package init?(parsing value: Span<UInt8>) {
        var urgency: UInt8 = 3
        var isIncremental = false
        var reader = DictionaryReader(value.count)
        while let member = reader.next(in: value) {
            guard member.isWellFormed else { return nil }
            guard member.key.count == 1 else { continue }
            switch (value[member.key.lowerBound], member.value) {
            case (UInt8(ascii: "u"), .digit(let number)) where number <= 7: urgency = number
            case (UInt8(ascii: "i"), .boolean(let flag)): isIncremental = flag
            default: break
            }
        }
        self.init(urgency: urgency, isIncremental: isIncremental)
    }
}

/// Iterates over the members of a structured dictionary (RFC 8941 section 3.2).
private struct DictionaryReader {
    enum Value {
        case digit(UInt8)
        case boolean(Bool)
        case other
    }

    struct Member {
        var key: Range<Int>
        var value: Value
        var isWellFormed: Bool
    }

    private var position = 0
    private let end: Int
    private var isFirst = true

    init(_ end: Int) { self.end = end }

    mutating func next(in bytes: Span<UInt8>) -> Member? {
        skipBlanks(in: bytes)
        if position == end { return nil }
        if !isFirst {
            guard bytes[position] == UInt8(ascii: ",") else { return malformed() }
            position += 1
            skipBlanks(in: bytes)
            guard position < end else { return malformed() }
        }
        isFirst = false
        guard var member = entry(in: bytes) else { return malformed() }
        while position < end, bytes[position] == UInt8(ascii: ";") {
            position += 1
            skipBlanks(in: bytes)
            guard entry(in: bytes) != nil else { return malformed() }
        }
        member.isWellFormed = true
        return member
    }

    /// A key with an optional value: a member or a parameter.
    private mutating func entry(in bytes: Span<UInt8>) -> Member? {
        let start = position
        while position < end, bytes[position].isKeyCharacter { position += 1 }
        guard position > start, bytes[start].isKeyStart else { return nil }
        var member = Member(key: start..<position, value: .boolean(true), isWellFormed: false)
        guard position < end, bytes[position] == UInt8(ascii: "=") else { return member }
        position += 1
        let valueStart = position
        guard skipItem(in: bytes) else { return nil }
        member.value = Self.value(valueStart..<position, in: bytes)
        return member
    }

    private static func value(_ range: Range<Int>, in bytes: Span<UInt8>) -> Value {
        if range.count == 1, bytes[range.lowerBound] &- 0x30 < 10 { return .digit(bytes[range.lowerBound] - 0x30) }
        guard range.count == 2, bytes[range.lowerBound] == UInt8(ascii: "?") else { return .other }
        switch bytes[range.lowerBound + 1] {
        case UInt8(ascii: "0"): return .boolean(false)
        case UInt8(ascii: "1"): return .boolean(true)
        default: return .other
        }
    }

    /// Skips a bare item or an inner list.
    private mutating func skipItem(in bytes: Span<UInt8>) -> Bool {
        let start = position
        var depth = 0
        while position < end {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                while position < end, bytes[position] != UInt8(ascii: "\"") {
                    position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
                }
                guard position < end else { return false }
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"):
                depth -= 1
                if depth < 0 { return false }
            case UInt8(ascii: ","), UInt8(ascii: ";"), 0x20, 0x09:
                if depth == 0 { return position > start }
            case 0x21...0x7E: break
            default: return false
            }
            position += 1
        }
        return depth == 0 && position > start
    }

    private mutating func skipBlanks(in bytes: Span<UInt8>) {
        while position < end, bytes[position] == 0x20 || bytes[position] == 0x09 { position += 1 }
    }

    private mutating func malformed() -> Member {
        position = end
        return Member(key: 0..<0, value: .other, isWellFormed: false)
    }
}

extension UInt8 {
    fileprivate var isKeyStart: Bool { self &- 0x61 < 26 || self == UInt8(ascii: "*") }
    fileprivate var isKeyCharacter: Bool {
        isKeyStart || self &- 0x30 < 10 || self == UInt8(ascii: "_") || self == UInt8(ascii: "-")
            || self == UInt8(ascii: ".")
    }
}
