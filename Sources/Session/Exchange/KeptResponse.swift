import HTTPWire

/// A response as it would be written to the client, kept to be judged.
struct KeptResponse {
    private var head: [UInt8] = []
    /// The body, framed for the client.
    private var content: [UInt8] = []
    let headLength: Int
    let isChunked: Bool

    /// - Parameters:
    ///   - headLength: bytes of the head.
    ///   - isChunked: the body is written in chunks.
    init(headLength: Int, isChunked: Bool) {
        self.headLength = headLength
        self.isChunked = isChunked
    }

    init(whole message: [UInt8]) {
        head = message
        headLength = message.count
        isChunked = false
    }

    mutating func append(_ more: UnsafeRawBufferPointer) {
        let missing = min(headLength - head.count, more.count)
        head.append(contentsOf: more[..<missing])
        content.append(contentsOf: more[missing...])
    }

    mutating func clear() {
        head = []
        content = []
    }

    var count: Int { head.count + content.count }

    /// Bytes of the body so far, those of its framing counted.
    var transferredLength: Int { content.count }

    /// Passes a piece of the message, from that offset, to the closure.
    /// - Parameter most: its length at most. Empty if nothing follows.
    func withPiece(from offset: Int, most: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
        let (bytes, first) = offset < head.count ? (head, offset) : (content, offset - head.count)
        let last = min(bytes.count, first + most)
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[first..<last])) }
    }

    /// The body so far, without its chunks. A body without chunks shares its memory with this one.
    var body: [UInt8] {
        guard isChunked else { return content }
        var body = content
        var decoder = ChunkedDecoder()
        var span = body.mutableSpan
        let length =
            switch decoder.decode(inPlace: &span) {
            case .passed(let kept, _, _), .malformed(_, let kept, _): kept
            }
        body.removeLast(body.count - length)
        return body
    }
}
