import Testing

@testable import PinproxyDecoding

@Suite struct FrameTests {
    private func bytes(_ message: [UInt8], _ body: [UInt8]) -> [UInt8] {
        Frame.head(message: message.count, body: body.count) + message + body
    }

    private func take(
        _ bytes: [UInt8], in pieces: Int, longestMessage: Int = 10, longestBody: Int = 10
    ) throws -> [String] {
        var reader = FrameReader(longestMessage: longestMessage, longestBody: longestBody)
        var found: [String] = []
        for start in stride(from: 0, to: bytes.count, by: pieces) {
            let piece = Array(bytes[start..<min(start + pieces, bytes.count)])
            if let frame = try piece.withUnsafeBytes({ try reader.take($0) }) {
                found.append("\(frame.message) \(frame.body)")
            }
        }
        return found
    }

    @Test(arguments: [([1, 2, 3], [4, 5]), ([], []), ([1], []), ([], [1])] as [([UInt8], [UInt8])])
    func aFrameIsWholeAfterItsLastByte(message: [UInt8], body: [UInt8]) throws {
        let whole = bytes(message, body)
        for pieces in 1...whole.count { #expect(try take(whole, in: pieces) == ["\(message) \(body)"]) }
        for length in 0..<whole.count { #expect(try take(Array(whole[..<length]), in: 1) == []) }
    }

    @Test func lengthsBeyondTheirBoundsAreADefect() {
        for (message, body) in [(11, 0), (0, 11), (Int.max, 0), (0, Int.max), (-1, 0), (0, -1)] {
            #expect(throws: Frame.Defect.self) { try take(Frame.head(message: message, body: body), in: 16) }
        }
    }

    /// A process answers once for each body.
    @Test func moreThanOneFrameIsADefect() {
        for rest in [[0], bytes([1], [])] as [[UInt8]] {
            #expect(throws: Frame.Defect.self) { try take(bytes([1], [2]) + rest, in: 100) }
            #expect(throws: Frame.Defect.self) { try take(bytes([1], [2]) + rest, in: 18) }
        }
    }
}
