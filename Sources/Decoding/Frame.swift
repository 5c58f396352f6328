/// A message between the proxy and a decoder process: two lengths, a message and a body.
///
///     message length    8 bytes, the low one first
///     body length       8 bytes
///     message, body
///
/// One frame answers each request. Before the first request the process sends one that says it is ready.
package enum Frame {
    static let headLength = 16
    /// The longest message of an answer: an error has a few texts of at most a thousand bytes.
    static let longestAnswer = 64 << 10
    /// The first message of a process.
    static let ready = Array("ready".utf8)

    struct Lengths: Hashable {
        let message: Int
        let body: Int

        var total: Int { message + body }
    }

    package struct Defect: Error {}

    static func head(message: Int, body: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for number in [message, body] {
            for shift in stride(from: 0, to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        }
        return bytes
    }

    /// Reads the lengths, within these bounds; nil if bytes are still missing.
    static func lengths(
        _ bytes: [UInt8], longestMessage: Int, longestBody: Int
    ) throws(Defect) -> Lengths? {
        guard bytes.count >= headLength else { return nil }
        let message = try number(bytes[..<8], most: longestMessage)
        return Lengths(message: message, body: try number(bytes[8..<16], most: longestBody))
    }

    private static func number(_ bytes: ArraySlice<UInt8>, most: Int) throws(Defect) -> Int {
        let number = bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let number = Int(exactly: number), number <= most else { throw Defect() }
        return number
    }
}

/// Collects a frame as its bytes arrive. It holds what has arrived, not what was announced.
package struct FrameReader {
    private let longestMessage: Int
    private let longestBody: Int
    private var bytes: [UInt8] = []

    package init(longestMessage: Int, longestBody: Int) {
        self.longestMessage = longestMessage
        self.longestBody = longestBody
    }

    /// The message and the body once both are complete. Throws beyond the bounds, or if more has arrived.
    package mutating func take(
        _ more: UnsafeRawBufferPointer
    ) throws(Frame.Defect) -> (message: [UInt8], body: [UInt8])? {
        bytes.append(contentsOf: more)
        guard let lengths = try Frame.lengths(bytes, longestMessage: longestMessage, longestBody: longestBody) else {
            return nil
        }
        let end = Frame.headLength + lengths.total
        guard bytes.count >= end else { return nil }
        guard bytes.count == end else { throw Frame.Defect() }
        let body = Frame.headLength + lengths.message
        return (Array(bytes[Frame.headLength..<body]), Array(bytes[body...]))
    }
}
