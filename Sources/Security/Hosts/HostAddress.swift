/// An IP address in its one canonical spelling, so that `::1` and `0:0:0:0:0:0:0:1` meet in a table.
///
/// IPv4 is four decimal numbers without leading zeros (RFC 6943 section 3.1.1: the octal and
/// shortened forms of `inet_aton` are refused, because programs disagree about them). IPv6 is read
/// by RFC 4291 section 2.2 and written by RFC 5952; zones (`%eth0`) and brackets are not accepted.
///
/// Different addresses may lead to the same place. Wherever hosts are compared it is their ``canonical`` ones that are.
package struct HostAddress: Sendable, Hashable, CustomStringConvertible {
    /// The canonical text: `192.0.2.1`, `2001:db8::1`.
    package let description: String
    /// Network byte order: 4 bytes, or 16.
    package let bytes: [UInt8]

    package var isIPv6: Bool { bytes.count == 16 }

    /// `nil` when the text is no address.
    package init?(_ text: some StringProtocol) {
        let characters = Array(text.utf8)
        if characters.contains(UInt8(ascii: ":")) {
            guard let words = Self.parseIPv6(characters) else { return nil }
            bytes = words.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
            description = Self.format(words)
        } else {
            guard let numbers = Self.parseIPv4(characters[...]) else { return nil }
            bytes = numbers
            description = Self.format(numbers)
        }
    }

    /// True when the text can only be meant as an address: its last label is a number (the WHATWG's
    /// "ends in a number"), or it holds a colon among what an IPv6 address is made of. Looks from the
    /// end no further than it must, and allocates nothing.
    static func looksLikeAddress(_ text: Span<UInt8>) -> Bool {
        var index = text.count
        var isNumber = index > 0
        while index > 0 {
            index -= 1
            switch text[index] {
            case UInt8(ascii: ":"): return true
            case UInt8(ascii: "0")...UInt8(ascii: "9"): continue
            case UInt8(ascii: "."):
                if isNumber { return index < text.count - 1 }
            case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): isNumber = false
            default: return false
            }
        }
        return isNumber
    }

    /// 4 bytes or 16, in network order; `nil` for any other number.
    package init?(bytes: [UInt8]) {
        switch bytes.count {
        case 4: description = Self.format(bytes)
        case 16:
            description = Self.format(
                stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) })
        default: return nil
        }
        self.bytes = bytes
    }

    /// The address that a connection to this one is made with, and by which hosts are compared: an IPv4-mapped
    /// address is the IPv4 address (RFC 4291 section 2.5.5.2), and the unspecified address, `0.0.0.0` or `::`, is
    /// loopback, where connect(2) leads it.
    package var canonical: HostAddress {
        var bytes = bytes
        if isIPv6, bytes.starts(with: Self.mapped) { bytes.removeFirst(12) }
        if bytes.allSatisfy({ $0 == 0 }) { bytes = bytes.count == 4 ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1] }
        return bytes == self.bytes ? self : HostAddress(bytes: bytes) ?? self
    }

    /// The IPv4 address whose host answers here, where a translator on the way sees to that: under the well-known prefix
    /// of NAT64 (RFC 6052 section 2.1), translated (RFC 2765 section 2.1) or compatible (RFC 4291 section
    /// 2.5.5.1); `nil` for all others. It is another address, but no other host: an entry for the one speaks for the other,
    /// which may have its own.
    package var translated: HostAddress? {
        guard isIPv6, !bytes[12...].starts(with: [0, 0, 0]) else { return nil }
        let isTranslated = Self.translating.contains { bytes.starts(with: $0) }
        return isTranslated ? HostAddress(bytes: Array(bytes[12...])) : nil
    }

    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]
    private static let translating: [[UInt8]] = [
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0],
        [UInt8](repeating: 0, count: 12),
    ]

    private static func parseIPv4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var numbers: [UInt8] = []
        for part in parts {
            guard (1...3).contains(part.count), part.count == 1 || part.first != UInt8(ascii: "0") else {
                return nil
            }
            var number = 0
            for digit in part {
                guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
                number = number * 10 + Int(digit - UInt8(ascii: "0"))
            }
            guard let byte = UInt8(exactly: number) else { return nil }
            numbers.append(byte)
        }
        return numbers
    }

    private static func parseIPv6(_ text: [UInt8]) -> [UInt16]? {
        var head: [UInt16] = []
        var tail: [UInt16] = []
        var sawGap = false
        var index = 0
        if text.starts(with: "::".utf8) {
            sawGap = true
            index = 2
        } else if text.first == UInt8(ascii: ":") {
            return nil
        }
        while index < text.count {
            let end = text[index...].firstIndex(of: UInt8(ascii: ":")) ?? text.count
            let part = text[index..<end]
            var words: [UInt16]
            if end == text.count, part.contains(UInt8(ascii: ".")) {
                guard let numbers = parseIPv4(part) else { return nil }
                words = [
                    UInt16(numbers[0]) << 8 | UInt16(numbers[1]),
                    UInt16(numbers[2]) << 8 | UInt16(numbers[3]),
                ]
            } else {
                guard let word = parseHexadecimal(part) else { return nil }
                words = [word]
            }
            if sawGap { tail += words } else { head += words }
            guard head.count + tail.count <= 8 else { return nil }
            guard end < text.count else { break }
            index = end + 1
            if index == text.count { return nil }
            if text[index] == UInt8(ascii: ":") {
                guard !sawGap else { return nil }
                sawGap = true
                index += 1
            }
        }
        let missing = 8 - head.count - tail.count
        guard sawGap ? missing >= 1 : missing == 0 else { return nil }
        return head + Array(repeating: 0, count: missing) + tail
    }

    private static func parseHexadecimal(_ text: ArraySlice<UInt8>) -> UInt16? {
        guard (1...4).contains(text.count) else { return nil }
        var value: UInt16 = 0
        for byte in text {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            value = value << 4 | UInt16(digit)
        }
        return value
    }

    private static func format(_ numbers: [UInt8]) -> String {
        numbers.map(String.init).joined(separator: ".")
    }

    /// RFC 5952 section 4: lower case, no leading zeros, the first longest run of two or more zero
    /// words as `::`; section 5: an IPv4-mapped address ends in dotted decimal.
    private static func format(_ words: [UInt16]) -> String {
        if words[0..<5].allSatisfy({ $0 == 0 }), words[5] == 0xffff {
            let numbers = words[6...].flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
            return "::ffff:" + format(numbers)
        }
        var gap = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, words[end] == 0 { end += 1 }
            if end - start > gap.count { gap = start..<end }
            start = max(end, start + 1)
        }
        func text(_ part: ArraySlice<UInt16>) -> String {
            part.map { String($0, radix: 16) }.joined(separator: ":")
        }
        guard gap.count > 1 else { return text(words[...]) }
        return text(words[..<gap.lowerBound]) + "::" + text(words[gap.upperBound...])
    }
}
