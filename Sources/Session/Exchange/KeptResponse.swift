import HTTPWire

/// A response as it would be written to the client, kept to be judged.
struct KeptResponse {
    /// The head's, and then the body's in the framing in which it is forwarded.
    private(set) var bytes: [UInt8] = []
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
        bytes = message
        headLength = message.count
        isChunked = false
    }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }
    mutating func clear() { bytes = [] }

    /// Bytes of the body so far, those of its framing counted.
    var transferredLength: Int { max(0, bytes.count - headLength) }

    /// The body so far, without its chunks.
    var body: [UInt8] {
        var body = Array(bytes.dropFirst(headLength))
        guard isChunked else { return body }
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
