/// Takes a chunked body out of its coding. Extensions are dropped; trailers are kept.
package struct ChunkedDecoder: Sendable {
    private var grammar = ChunkedGrammar()
    /// The allowed trailer fields, once the body has ended.
    package private(set) var trailers = TrailerSection()
    private var line: [UInt8] = []

    package init() {}

    /// Moves the body's bytes to the front of the buffer. Bytes after `consumed` stay where they are.
    package mutating func decode(inPlace bytes: inout MutableSpan<UInt8>) -> BodyProgress {
        if grammar.isEnded { return .passed(kept: 0, consumed: 0, ended: true) }
        var payload = 0
        var position = 0
        while position < bytes.count {
            switch grammar.next(in: bytes.span, from: position) {
            case .chunkLine(let count), .dataEnd(let count):
                position += count
            case .part(let count):
                if grammar.isInTrailers { keep(bytes.span.extracting(position..<position + count)) }
                position += count
            case .trailerLine(let count):
                keep(bytes.span.extracting(position..<position + count))
                trailers.append(line)
                line = []
                position += count
            case .data(let count):
                if payload == position {
                    payload += count
                } else {
                    for offset in position..<position + count {
                        bytes[payload] = bytes[offset]
                        payload += 1
                    }
                }
                position += count
            case .end(let count):
                return .passed(kept: payload, consumed: position + count, ended: true)
            case .malformed(let code):
                return .malformed(WireError(code, at: position), kept: payload, consumed: position)
            }
        }
        return .passed(kept: payload, consumed: position, ended: false)
    }

    private mutating func keep(_ bytes: Span<UInt8>) { line += bytes.array }
}
