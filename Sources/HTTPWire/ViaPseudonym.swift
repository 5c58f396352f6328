/// This proxy's own name in Via (RFC 9110 section 7.6.3), `pinproxy-` and sixteen hexadecimal digits, which reveals
/// loops. A name shared by all of its kind would be mistaken in a chain.
package struct ViaPseudonym: Sendable, Hashable, CustomStringConvertible {
    private static let prefix: [9 of UInt8] = [
        UInt8(ascii: "p"), UInt8(ascii: "i"), UInt8(ascii: "n"), UInt8(ascii: "p"), UInt8(ascii: "r"),
        UInt8(ascii: "o"), UInt8(ascii: "x"), UInt8(ascii: "y"), UInt8(ascii: "-"),
    ]
    private static let length = 25

    private let token: UInt64
    /// Written into every head, so it is kept as it is written.
    private let text: [25 of UInt8]

    package init(token: UInt64) {
        self.token = token
        text = [25 of UInt8] { index in
            if index < 9 { return Self.prefix[index] }
            let digit = UInt8(truncatingIfNeeded: token >> UInt64(4 * (Self.length - 1 - index))) & 15
            return digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
        }
    }

    package static func == (one: ViaPseudonym, other: ViaPseudonym) -> Bool { one.token == other.token }
    package func hash(into hasher: inout Hasher) { hasher.combine(token) }

    package var description: String {
        unsafe text.span.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }

    func write(into out: inout [UInt8]) {
        unsafe text.span.withUnsafeBufferPointer { unsafe out.append(contentsOf: $0) }
    }

    /// Whether a Via field names it, as any hop, in any form of list: others can't guess the digits.
    fileprivate func isNamed(in value: Span<UInt8>) -> Bool {
        var start = 0
        while start + Self.length <= value.count {
            var index = 0
            while index < Self.length, value[start + index].lowercased == text[index] { index += 1 }
            if index == Self.length { return true }
            start += 1
        }
        return false
    }
}

extension RequestHead {
    package var hasVia: Bool { lastVia != nil }

    /// Whether the request has passed this proxy before. Hardly any has a Via field, so the name isn't asked for
    /// before.
    package func hasPassed(_ proxy: @autoclosure () -> ViaPseudonym, in bytes: Span<UInt8>) -> Bool {
        guard lastVia != nil else { return false }
        let proxy = proxy()
        for index in fields.indices where fields[index].id == .via {
            if proxy.isNamed(in: bytes.extracting(fields[index].value.offsets)) { return true }
        }
        return false
    }

    /// The hops that the request has passed, as one list: the values of its Via fields; nil without any.
    package func via(in bytes: Span<UInt8>) -> String? {
        guard lastVia != nil else { return nil }
        var values: [String] = []
        for index in fields.indices where fields[index].id == .via && !fields[index].value.isEmpty {
            values.append(fields[index].value.text(in: bytes))
        }
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}
