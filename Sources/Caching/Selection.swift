package import PinproxyHTTPWire

/// The values of the fields that a stored response varies by (RFC 9111 section 4.1).
package struct SelectedFields: Sendable, Hashable {
    /// In the order of the names; nil: the request has no such field.
    package let values: [[UInt8]?]

    /// - Parameter names: in lower case.
    package init(_ names: [String], of request: borrowing RequestView) {
        var values = [[UInt8]?](repeating: nil, count: names.count)
        for field in request.head.fields {
            let index = names.firstIndex { request.bytes.equals(field.name, ignoringCase: $0) }
            guard let index else { continue }
            let value = request.bytes.extracting(field.value.offsets)
            let text = Self.lists.contains(field.id) ? Self.normalized(value) : value.array
            values[index] = values[index].map { $0 + Self.separator(field.id) + text } ?? text
        }
        self.values = values
    }

    /// Fields that are lists by their definition. Blanks may mean something in others.
    private static let lists: Set<FieldName> = [.accept, .acceptEncoding, .acceptLanguage]

    /// Between the values of several lines, which are one list (RFC 9110 section 5.3).
    private static func separator(_ id: FieldName) -> [UInt8] { lists.contains(id) ? [0x2C] : [0x2C, 0x20] }

    /// Without the blanks around commas, which change nothing in a list. Quoted text stays.
    private static func normalized(_ value: Span<UInt8>) -> [UInt8] {
        let (comma, quote, backslash) = (UInt8(ascii: ","), UInt8(ascii: "\""), UInt8(ascii: "\\"))
        var out: [UInt8] = []
        out.reserveCapacity(value.count)
        var blanks: [UInt8] = []
        var (isQuoted, isEscaped) = (false, false)
        for offset in value.indices {
            let byte = value[offset]
            if !isQuoted, byte == UInt8(ascii: " ") || byte == 0x09 {
                blanks.append(byte)
                continue
            }
            if byte != comma || isQuoted, out.last != comma || isQuoted { out += blanks }
            blanks = []
            out.append(byte)
            if byte == quote, !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && byte == backslash && !isEscaped
        }
        return out + blanks
    }
}
