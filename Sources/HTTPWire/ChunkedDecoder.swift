/// Takes a chunked body out of its coding, for receivers that don't know it (HTTP/1.0). Extensions
/// and trailers are dropped.
package struct ChunkedDecoder: Sendable {
    private var grammar = ChunkedGrammar()

    package init() {}

    /// Moves the body's bytes to the front of the buffer. Bytes after `consumed` stay where they are.
    package mutating func decode(inPlace bytes: inout MutableSpan<UInt8>) -> BodyProgress {
        if grammar.isEnded { return .passed(kept: 0, consumed: 0, ended: true) }
        var payload = 0
        var position = 0
        while position < bytes.count {
            switch grammar.next(in: bytes.span, from: position) {
            case .part(let count), .chunkLine(let count), .dataEnd(let count), .trailerLine(let count):
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
}
