/// A chunk's first line (RFC 9112 section 7.1): its size in hexadecimal, and CRLF.
struct ChunkSize {
    /// The most bytes of a chunk's framing.
    static let most = 20
    private let size: Int

    init(_ size: Int) {
        self.size = size
    }

    /// Borrows the line, at most 18 bytes, without allocating.
    func withBytes<R>(_ body: (RawSpan) -> R) -> R {
        var line = InlineArray<18, UInt8>(repeating: 0)
        var position = 18
        func put(_ byte: UInt8) {
            position -= 1
            line[position] = byte
        }
        put(UInt8(ascii: "\n"))
        put(UInt8(ascii: "\r"))
        var left = size
        repeat {
            let digit = UInt8(left & 15)
            put(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            left >>= 4
        } while left > 0
        return body(line.span.bytes.extracting(position...))
    }
}
