/// The result of parsing the bytes received so far.
package enum HeadProgress: Sendable {
    /// More bytes are needed; call again with the same bytes and those that came after them.
    case incomplete
    /// The head is whole; its `length` says where the body begins.
    case complete
    case malformed(WireError)
    /// No head of at most `limit` bytes begins here.
    case tooLarge
    /// The head has more than `HeadParser.fieldLimit` field lines.
    case tooManyFields
}

/// Parses the heads of HTTP/1.1 messages strictly by RFC 9112: what two parsers may read differently is malformed.
///
/// The bytes stay where they arrived. Given more of a head, the parser continues, and looks at each byte twice at most;
/// the buffer may move, but begins with the head's first byte, and `head` must be the same.
/// After `complete`, `reset()` makes it ready for the next head.
package struct HeadParser: Sendable {
    /// The most field lines of a head, since bytes alone don't bound the work.
    package static let fieldLimit = 1000

    private enum Stage { case beginning, startLine, fields }

    /// The longest head, in bytes, at most 2³¹. It may be changed at any time, and holds from the next call on.
    package var limit: Int {
        didSet { limit = min(limit, 1 << 31) }
    }
    private var stage = Stage.beginning
    private var lineStart = 0
    /// Everything before it has been searched for the line's end.
    private var cursor = 0
    private var rules = FieldRules()
    /// The framing of the last complete head.
    package private(set) var framing = HTTP1Framing()

    /// - Parameter limit: the longest head, in bytes, at most 2³¹.
    package init(limit: Int) {
        self.limit = min(limit, 1 << 31)
    }

    package mutating func reset() {
        stage = .beginning
        lineStart = 0
        cursor = 0
        rules = FieldRules()
    }

    /// Parses a request's head. Empty lines before it are passed over (RFC 9112 section 2.2).
    package mutating func parseRequest(_ bytes: Span<UInt8>, into head: inout RequestHead) -> HeadProgress {
        while true {
            switch nextLine(in: bytes) {
            case .incomplete: return .incomplete
            case .tooLarge: return .tooLarge
            case .malformed(let error): return .malformed(error)
            case .line(let line):
                switch stage {
                case .beginning:
                    if line.isEmpty { continue }
                    head.clear()
                    stage = .startLine
                    fallthrough
                case .startLine:
                    if let error = head.parseRequestLine(line, in: bytes) { return .malformed(error) }
                    stage = .fields
                case .fields:
                    if line.isEmpty {
                        if let error = head.finish(rules, length: lineStart, in: bytes, framing: &framing) {
                            return .malformed(error)
                        }
                        return .complete
                    }
                    let fault = takeField(line, in: bytes, into: &head.fields, lastVia: &head.lastVia, heedsHost: true)
                    if let fault { return fault }
                }
            }
        }
    }

    /// - Parameter method: of the request that it answers, which decides about the body.
    package mutating func parseResponse(
        _ bytes: Span<UInt8>, to method: Method, into head: inout ResponseHead
    ) -> HeadProgress {
        while true {
            switch nextLine(in: bytes) {
            case .incomplete: return .incomplete
            case .tooLarge: return .tooLarge
            case .malformed(let error): return .malformed(error)
            case .line(let line):
                switch stage {
                case .beginning, .startLine:
                    head.clear()
                    if line.isEmpty { return .malformed(WireError(.leadingEmptyLine, at: 0)) }
                    if let error = head.parseStatusLine(line, in: bytes) { return .malformed(error) }
                    stage = .fields
                case .fields:
                    if line.isEmpty {
                        if let error = head.finish(rules, length: lineStart, answering: method, framing: &framing) {
                            return .malformed(error)
                        }
                        return .complete
                    }
                    // Only requests have a Host that matters.
                    let fault = takeField(line, in: bytes, into: &head.fields, lastVia: &head.lastVia, heedsHost: false)
                    if let fault { return fault }
                }
            }
        }
    }

    private enum NextLine {
        case line(ByteRange)
        case incomplete, tooLarge
        case malformed(WireError)
    }

    /// The next line without its CR LF, checked for control characters as it arrives; moves `lineStart`.
    private mutating func nextLine(in bytes: Span<UInt8>) -> NextLine {
        let end = min(bytes.count, limit)
        let position = bytes.endOfFieldText(from: cursor, to: end)
        cursor = position
        guard position < end else { return bytes.count >= limit ? .tooLarge : .incomplete }

        switch bytes[position] {
        case .carriageReturn:
            guard position + 1 < end else { return bytes.count >= limit ? .tooLarge : .incomplete }
            guard bytes[position + 1] == .lineFeed else {
                return .malformed(WireError(.bareCarriageReturn, at: position))
            }
            let line = ByteRange(lineStart, position)
            cursor = position + 2
            lineStart = cursor
            return .line(line)
        case .lineFeed:
            return .malformed(WireError(.bareLineFeed, at: position))
        default:
            return .malformed(WireError(.controlCharacter, at: position))
        }
    }

    /// - Returns: nil if nothing is wrong with the field.
    @inline(__always)
    private mutating func takeField(
        _ line: ByteRange, in bytes: Span<UInt8>, into fields: inout [HeadField], lastVia: inout Int?, heedsHost: Bool
    ) -> HeadProgress? {
        if fields.count == Self.fieldLimit { return .tooManyFields }
        switch parseField(line, in: bytes) {
        case .failure(let error): return .malformed(error)
        case .success(let field):
            if field.id == .via { lastVia = fields.count }
            fields.append(field)
            guard heedsHost || field.id != .host, let code = rules.note(field, in: bytes) else { return nil }
            return .malformed(WireError(code, at: field.line.start))
        }
    }

    private func parseField(_ line: ByteRange, in bytes: Span<UInt8>) -> Result<HeadField, WireError> {
        let beginning = FieldNameTable.shared.beginning(line.start, in: bytes)
        if let (id, colon) = beginning, id != .other { return .success(Self.field(id, line, colon, in: bytes)) }
        let token = ASCIISet.token
        var colon = line.start
        while colon < line.end, token.contains(bytes[colon]) { colon += 1 }
        guard colon < line.end, bytes[colon] == UInt8(ascii: ":"), colon > line.start else {
            return .failure(WireError(Self.defect(ofName: line, stoppedAt: colon, in: bytes), at: colon))
        }
        let id = beginning?.name ?? FieldNameTable.shared.lookUp(ByteRange(line.start, colon), in: bytes)
        return .success(Self.field(id, line, colon, in: bytes))
    }

    @inline(__always)
    private static func field(_ id: FieldName, _ line: ByteRange, _ colon: Int, in bytes: Span<UInt8>) -> HeadField {
        HeadField(
            name: ByteRange(line.start, colon), value: bytes.trimmed(ByteRange(colon + 1, line.end)),
            line: ByteRange(line.start, line.end + 2), id: id)
    }

    private static func defect(
        ofName line: ByteRange, stoppedAt offset: Int, in bytes: Span<UInt8>
    ) -> WireError.Code {
        if offset == line.end { return .missingColon }
        if bytes[offset].isBlank { return offset == line.start ? .foldedLine : .spaceBeforeColon }
        return bytes[offset] == UInt8(ascii: ":") ? .emptyFieldName : .fieldName
    }
}
