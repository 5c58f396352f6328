/// A field section to be sent in HTTP/2 (RFC 9113 section 8.3): pseudo-header fields first, names in lower case.
/// Reusable storage, with all names and values in one array of bytes.
package struct FieldBlock: Sendable {
    package struct Field: Sendable {
        package let name: ByteRange
        package let value: ByteRange
        /// A secret, which no HPACK table of any hop may hold (RFC 7541 section 7.1.3).
        package let isNeverIndexed: Bool
    }

    package internal(set) var bytes: [UInt8] = []
    package private(set) var fields: [Field] = []
    private var lines = KnownLines()

    package init() {}

    package mutating func clear() {
        bytes.removeAll(keepingCapacity: true)
        fields.removeAll(keepingCapacity: true)
    }

    /// Appends a field with a lower-case name.
    package mutating func append(_ name: StaticString, _ value: String) {
        append(name) { $0.append(contentsOf: value.utf8) }
    }

    mutating func append(_ name: StaticString, write: (inout [UInt8]) -> Void) {
        let start = bytes.count
        bytes.append(contentsOf: name)
        let end = bytes.count
        write(&bytes)
        fields.append(Field(name: ByteRange(start, end), value: ByteRange(end, bytes.count), isNeverIndexed: false))
    }

    /// Rules for `takeLines`.
    struct LineRules: OptionSet {
        let rawValue: UInt8
        /// The lines contain edits, which may have any name.
        static let mayBeConnectionSpecific = LineRules(rawValue: 1)
        /// No line may be indexed.
        static let areNeverIndexed = LineRules(rawValue: 2)
        /// Drops the keys of a WebSocket handshake (RFC 8441 section 5).
        static let haveNoWebSocketKey = LineRules(rawValue: 4)
    }

    /// Lines of a received head, where they were written. They aren't parsed again.
    struct KnownLines {
        fileprivate var fields: [HeadField] = []
        /// HTTP/2 has no other names.
        fileprivate var areLowerCase = false

        /// - Parameter start: the line's, in the block's bytes.
        @inline(__always)
        mutating func append(_ field: HeadField, at start: Int) {
            let distance = start - field.line.start
            func moved(_ range: ByteRange) -> ByteRange { ByteRange(range.start + distance, range.end + distance) }
            fields.append(
                HeadField(name: moved(field.name), value: moved(field.value), line: moved(field.line), id: field.id))
        }
    }

    /// The array for known lines, empty; ``takeLines(from:_:_:)`` takes it back.
    /// - Parameter version: of the received message.
    mutating func lendLines(_ version: HTTPVersion) -> KnownLines {
        var lent = KnownLines()
        swap(&lent, &lines)
        lent.fields.removeAll(keepingCapacity: true)
        lent.areLowerCase = version == .http2
        return lent
    }

    /// Appends the HTTP/1.1 field lines in `bytes` from `start` on as fields. Cookies are split (RFC 9113 section
    /// 8.2.3).
    /// - Parameter known: some of the lines, in their order.
    mutating func takeLines(from start: Int, _ rules: LineRules, _ known: consuming KnownLines = KnownLines()) {
        var position = start
        let end = bytes.count
        var next = 0
        while position < end {
            let id: FieldName
            let name: ByteRange
            let value: ByteRange
            if next < known.fields.count, known.fields[next].line.start == position {
                let field = known.fields[next]
                next += 1
                (id, name, value) = (field.id, field.name, field.value)
                if !known.areLowerCase { lowercase(id, name) }
                position = field.line.end
            } else {
                (id, name) = takeName(at: position)
                let lineEnd = bytes.span.endOfFieldText(from: name.end, to: end)
                value = bytes.span.trimmed(ByteRange(name.end + 1, lineEnd))
                position = lineEnd + 2
            }
            if rules.mayDrop, drops(name, id, rules) { continue }
            if id == .cookie {
                splitCookies(value, named: name)
            } else {
                fields.append(
                    Field(name: name, value: value, isNeverIndexed: id.isSecret || rules.contains(.areNeverIndexed)))
            }
        }
        lines = known
    }

    private mutating func lowercase(_ id: FieldName, _ name: ByteRange) {
        var out = bytes.mutableSpan
        if id != .other { return out.lowercaseName(name.offsets) }
        for offset in name.offsets { out[offset] = out[offset].lowercased }
    }

    /// Reads a line's name, and converts it to lower case.
    private mutating func takeName(at start: Int) -> (FieldName, ByteRange) {
        let beginning = FieldNameTable.shared.beginning(start, in: bytes.span)
        if let (id, colon) = beginning, id != .other {
            var out = bytes.mutableSpan
            out.lowercaseName(start..<colon)
            return (id, ByteRange(start, colon))
        }
        var colon = start
        var out = bytes.mutableSpan
        while out[colon] != UInt8(ascii: ":") {
            out[colon] = out[colon].lowercased
            colon += 1
        }
        let name = ByteRange(start, colon)
        return (beginning?.name ?? FieldNameTable.shared.lookUp(name, in: bytes.span), name)
    }

    private func drops(_ name: ByteRange, _ id: FieldName, _ rules: LineRules) -> Bool {
        let span = bytes.span
        if rules.contains(.haveNoWebSocketKey),
            span.equals(name, ignoringCase: "sec-websocket-key")
                || span.equals(name, ignoringCase: "sec-websocket-accept")
        {
            return true
        }
        switch id {
        case .connection, .keepAlive, .proxyConnection, .transferEncoding, .upgrade, .te, .host, .http2Settings:
            return true
        default: return false
        }
    }

    private mutating func splitCookies(_ value: ByteRange, named name: ByteRange) {
        var start = value.start
        var position = start
        while position + 1 < value.end {
            if bytes[position] == UInt8(ascii: ";"), bytes[position + 1] == .space {
                fields.append(Field(name: name, value: ByteRange(start, position), isNeverIndexed: true))
                position += 2
                start = position
            } else {
                position += 1
            }
        }
        fields.append(Field(name: name, value: ByteRange(start, value.end), isNeverIndexed: true))
    }
}

extension MutableSpan<UInt8> {
    /// Converts a known name, made of letters, digits and dashes, to lower case.
    fileprivate mutating func lowercaseName(_ range: Range<Int>) {
        var start = range.lowerBound
        while start + 8 <= range.upperBound {
            store(span.word(at: start) | 0x2020_2020_2020_2020, at: start)
            start += 8
        }
        while start < range.upperBound {
            self[start] |= 0x20
            start += 1
        }
    }

    @inline(__always)
    private mutating func store(_ word: UInt64, at offset: Int) {
        // Safe: any bytes are valid UInt8 values, and the offset is checked.
        var raw = unsafe mutableBytes
        raw.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
    }
}

extension FieldBlock.LineRules {
    fileprivate var mayDrop: Bool { contains(.mayBeConnectionSpecific) || contains(.haveNoWebSocketKey) }
}
