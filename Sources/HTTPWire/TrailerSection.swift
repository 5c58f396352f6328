/// Fields that follow a body (RFC 9110 section 6.5): those that may stand there.
package struct TrailerSection: Sendable {
    /// Each ends with CR LF.
    package private(set) var lines: [UInt8] = []

    package init() {}

    mutating func append(_ line: [UInt8]) {
        var line = line
        var kept = 0
        var span = line.mutableSpan
        ChunkedFilter.keepTrailer(ByteRange(0, span.count), at: &kept, in: &span)
        lines += line[..<kept]
    }
}
