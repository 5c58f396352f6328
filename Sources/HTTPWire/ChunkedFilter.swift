/// Passes a chunked body on, with extensions and trailers, but without what recipients understand differently: leading
/// zeros of sizes, and trailer fields that belong in the head (RFC 9110 section 6.5.1). Members of Proxy-Status in this
/// proxy's name go too. A line passes when it is complete; nothing moves where nothing is dropped.
struct ChunkedFilter: Sendable {
    private var grammar = ChunkedGrammar()
    /// Bytes at the front of the next buffer that the grammar knows: the beginning of a line.
    private var seen = 0

    mutating func filter(inPlace bytes: inout MutableSpan<UInt8>) -> BodyProgress {
        if grammar.isEnded { return .passed(kept: 0, consumed: 0, ended: true) }
        var kept = 0
        var start = 0
        var position = seen
        while position < bytes.count {
            switch grammar.next(in: bytes.span, from: position) {
            case .part(let count):
                position += count
                continue
            case .chunkLine(let count):
                position += count
                let size = bytes.span.withoutLeadingZeros(ByteRange(start, position))
                Self.move(size.offsets, to: &kept, in: &bytes)
            case .data(let count), .dataEnd(let count):
                position += count
                Self.move(start..<position, to: &kept, in: &bytes)
            case .trailerLine(let count):
                position += count
                Self.keepTrailer(ByteRange(start, position), at: &kept, in: &bytes)
            case .end(let count):
                position += count
                Self.move(start..<position, to: &kept, in: &bytes)
                return .passed(kept: kept, consumed: position, ended: true)
            case .malformed(let code):
                return .malformed(WireError(code, at: position), kept: kept, consumed: start)
            }
            start = position
        }
        seen = position - start
        return .passed(kept: kept, consumed: start, ended: false)
    }

    private static func move(_ range: Range<Int>, to kept: inout Int, in bytes: inout MutableSpan<UInt8>) {
        guard range.lowerBound > kept else {
            kept = range.upperBound
            return
        }
        for offset in range {
            bytes[kept] = bytes[offset]
            kept += 1
        }
    }

    /// Moves a trailer's line to the kept bytes, or what may be passed on of it.
    static func keepTrailer(_ line: ByteRange, at kept: inout Int, in bytes: inout MutableSpan<UInt8>) {
        var colon = line.start
        while bytes[colon] != UInt8(ascii: ":") { colon += 1 }
        let name = FieldNameTable.shared.lookUp(ByteRange(line.start, colon), in: bytes.span)
        guard name.isTrailer else { return }
        let value = ByteRange(colon + 1, line.end - 2)
        guard name == .proxyStatus, ProxyStatusList.content(of: value, in: bytes.span) != .others else {
            return move(line.offsets, to: &kept, in: &bytes)
        }
        // Never longer than it was: each member but the first had a comma before it.
        var members = ProxyStatusList(bytes.span.trimmed(value))
        var isFirst = true
        while case .member(let member, isOurs: let isOurs) = members.next(in: bytes.span) {
            if isOurs { continue }
            if isFirst {
                move(line.start..<colon + 1, to: &kept, in: &bytes)
            } else {
                bytes[kept] = UInt8(ascii: ",")
                kept += 1
            }
            isFirst = false
            move(member.offsets, to: &kept, in: &bytes)
        }
        if !isFirst { move(line.end - 2..<line.end, to: &kept, in: &bytes) }
    }
}

extension FieldName {
    /// Whether a field is allowed in a trailer section: by its definition, or because it is unknown.
    fileprivate var isTrailer: Bool {
        switch self {
        case .etag, .proxyStatus, .other: true
        default: false
        }
    }
}
