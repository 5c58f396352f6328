/// Strict Base64 of RFC 4648 section 4: padded, no other characters, unused bits zero.
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let count = min(3, bytes.count - start)
            let group =
                UInt32(bytes[start]) << 16
                | (count > 1 ? UInt32(bytes[start + 1]) << 8 : 0)
                | (count > 2 ? UInt32(bytes[start + 2]) : 0)
            for position in 0..<4 {
                let padding = position > count
                text.append(padding ? UInt8(ascii: "=") : alphabet[Int(group >> (18 - 6 * UInt32(position))) & 63])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil unless the text is complete groups of four; callers remove white space.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        // Other modules call this unspecialized: the loop would take ten times as long.
        text.withContiguousStorageIfAvailable { decode($0) } ?? Array(text).withUnsafeBufferPointer { decode($0) }
    }

    private static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var group: UInt32 = 0
        var characters = 0
        var padding = 0
        for character in text {
            // No group may follow a padded one.
            guard padding == 0 || characters % 4 != 0 else { return nil }
            if character == UInt8(ascii: "=") {
                padding += 1
                group <<= 6
            } else {
                let value = values[Int(character)]
                guard value != 0xFF, padding == 0 else { return nil }
                group = group << 6 | UInt32(value)
            }
            characters += 1
            guard characters % 4 == 0 else { continue }
            let unused: UInt32 = padding == 0 ? 0 : padding == 1 ? 0xFF : 0xFFFF
            guard padding <= 2, group & unused == 0 else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: group >> 16))
            if padding < 2 { bytes.append(UInt8(truncatingIfNeeded: group >> 8)) }
            if padding < 1 { bytes.append(UInt8(truncatingIfNeeded: group)) }
            group = 0
        }
        return characters % 4 == 0 ? bytes : nil
    }
}

enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Accepts both cases, and colons between bytes.
    static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        var afterColon = true
        for character in text {
            if character == UInt8(ascii: ":") {
                guard high == nil, !afterColon else { return nil }
                afterColon = true
                continue
            }
            guard let value = value(of: character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
            afterColon = false
        }
        guard high == nil, !afterColon else { return nil }
        return bytes
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
