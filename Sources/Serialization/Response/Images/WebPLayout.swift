/// The chunks of a WebP (RFC 9649 section 2.3), counted first: libwebp walks from the first frame to each.
enum WebPLayout {
    private static let mostFrames = 10_000
    private static let mostChunks = 1 << 16

    /// - Throws: what is too much. What is damaged is libwebp's to say.
    static func check(_ bytes: UnsafeBufferPointer<UInt8>) throws(ImageDefect) {
        var at = 12
        var (chunks, frames) = (0, 0)
        while at + 8 <= bytes.count {
            chunks += 1
            guard chunks <= mostChunks else { throw ImageDefect("more than \(mostChunks) chunks") }
            if bytes[at..<at + 4].elementsEqual("ANMF".utf8) {
                frames += 1
                guard frames <= mostFrames else { throw ImageDefect("more than \(mostFrames) frames") }
            }
            let length = (0..<4).reduce(0) { $0 | Int(bytes[at + 4 + $1]) << (8 * $1) }
            at += 8 + length + length % 2
        }
    }
}
