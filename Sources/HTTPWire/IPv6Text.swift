/// IPv6 addresses as text: read by RFC 4291 section 2.2, written by RFC 5952. IPv4-mapped
/// addresses are written with their dotted quad (`::ffff:192.0.2.1`), as inet_ntop does.
enum IPv6Text {
    /// The canonical text of the address in the range; nil if there is none. No zone.
    static func canonical(_ range: ByteRange, in bytes: Span<UInt8>) -> String? {
        guard let groups = parse(range, in: bytes) else { return nil }
        return write(groups)
    }

    private typealias Groups = [8 of UInt16]

    private static func parse(_ range: ByteRange, in bytes: Span<UInt8>) -> Groups? {
        var groups = Groups(repeating: 0)
        var count = 0
        /// Where `::` stands, as a number of groups before it.
        var gap: Int?
        var position = range.start
        let end = range.end
        let colon = UInt8(ascii: ":")

        if position + 1 < end, bytes[position] == colon, bytes[position + 1] == colon {
            gap = 0
            position += 2
        }
        while position < end {
            if count == 8 { return nil }
            let start = position
            var value: UInt16 = 0
            while position < end, let digit = bytes[position].hexValue {
                if position - start == 4 { return nil }
                value = value << 4 | UInt16(digit)
                position += 1
            }
            if position < end, bytes[position] == UInt8(ascii: ".") {
                guard count <= 6, let quad = IPv4Text.parse(ByteRange(start, end), in: bytes) else { return nil }
                groups[count] = UInt16(truncatingIfNeeded: quad >> 16)
                groups[count + 1] = UInt16(truncatingIfNeeded: quad)
                count += 2
                position = end
                break
            }
            guard position > start else { return nil }
            groups[count] = value
            count += 1
            if position == end { break }
            guard bytes[position] == colon, position + 1 < end else { return nil }
            position += 1
            if bytes[position] == colon {
                guard gap == nil else { return nil }
                gap = count
                position += 1
            }
        }

        guard let gap else { return count == 8 ? groups : nil }
        // "::" stands for one group at least.
        guard count < 8 else { return nil }
        let moved = count - gap
        var expanded = Groups(repeating: 0)
        for index in 0..<gap { expanded[index] = groups[index] }
        for index in 0..<moved { expanded[8 - moved + index] = groups[gap + index] }
        return expanded
    }

    private static func write(_ groups: Groups) -> String {
        let isMapped = (0..<5).allSatisfy { groups[$0] == 0 } && groups[5] == 0xFFFF
        if isMapped { return "::ffff:" + IPv4Text.write(UInt32(groups[6]) << 16 | UInt32(groups[7])) }

        // The first of the longest runs of at least two zeros becomes "::".
        var best = 0..<0
        var run = 0
        for index in 0..<8 {
            if groups[index] != 0 { run = index + 1; continue }
            if index + 1 - run > best.count { best = run..<index + 1 }
        }
        if best.count < 2 { best = 0..<0 }

        var text = ""
        var index = 0
        while index < 8 {
            if index == best.lowerBound, !best.isEmpty {
                text += "::"
                index = best.upperBound
                continue
            }
            if !text.isEmpty, !text.hasSuffix(":") { text += ":" }
            text += String(groups[index], radix: 16)
            index += 1
        }
        return text
    }
}

/// IPv4 addresses as four decimal numbers; the shorter, octal and hexadecimal forms of inet_aton
/// are none.
enum IPv4Text {
    static func parse(_ range: ByteRange, in bytes: Span<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var position = range.start
        for part in 0..<4 {
            let start = position
            var value: UInt32 = 0
            while position < range.end, bytes[position].isDigit, position - start < 4 {
                value = value * 10 + UInt32(bytes[position] & 0x0F)
                position += 1
            }
            let digits = position - start
            guard 1...3 ~= digits, value < 256, digits == 1 || bytes[start] != UInt8(ascii: "0") else { return nil }
            address = address << 8 | value
            if part < 3 {
                guard position < range.end, bytes[position] == UInt8(ascii: ".") else { return nil }
                position += 1
            }
        }
        return position == range.end ? address : nil
    }

    static func write(_ address: UInt32) -> String {
        "\(address >> 24).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
    }
}
