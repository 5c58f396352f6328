/// Fields that follow a body (RFC 9110 section 6.5), as far as they are allowed there.
package struct TrailerSection: Sendable {
    /// Each ends with CR LF.
    package private(set) var lines: [UInt8] = []

    package init() {}

    /// - Parameter lines: well-formed field lines, each with CR LF. Fields not allowed in trailers are dropped.
    package init(_ lines: Span<UInt8>) {
        var start = 0
        while start < lines.count {
            let end = min(lines.count, lines.endOfFieldText(from: start, to: lines.count) + 2)
            append(lines.extracting(start..<end).array)
            start = end
        }
    }

    package var isEmpty: Bool { lines.isEmpty }

    mutating func append(_ line: [UInt8]) {
        var line = line
        var kept = 0
        var span = line.mutableSpan
        ChunkedFilter.keepTrailer(ByteRange(0, span.count), at: &kept, in: &span)
        lines += line[..<kept]
    }
}
