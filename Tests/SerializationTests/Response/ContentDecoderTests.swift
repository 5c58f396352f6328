import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

@Suite struct ContentDecoderTests {
    private static let text =
        "{\"name\": \"pinproxy\", \"tags\": [\"a\", \"b\", null], \"text\": \""
        + String(repeating: "abcdefghij", count: 20) + "\"}"

    /// The text encoded with gzip, zlib, raw DEFLATE, Brotli and Zstandard.
    private static let coded: [(coding: String, base64: String)] = [
        (
            "gzip",
            "H4sIAAAAAAACA6tWykvMTVWyUlAqyMwrKMqvqFTSUVAqSUwvBopFKyWCeElAIq80JycWJJNaUQJSnZiUnJKalp6RmTW0"
                + "WUq1AA2jGM8CAQAA"
        ),
        ("deflate", "eNqrVspLzE1VslJQKsjMKyjKr6hU0lFQKklMLwaKRSslgnhJQCKvNCcnFiSTWlECUp2YlJySmpaekZk1tFlKtQB8eGAz"),
        ("deflate", "q1bKS8xNVbJSUCrIzCsoyq+oVNJRUCpJTC8GikUrJYJ4SUAirzQnJxYkk1pRAlKdmJSckpqWnpGZNbRZSrUA"),
        (
            "br",
            "GwEBAASibab6XDYkUxXDq686mJOx4BjzgJsW14pUKSpVJnDIzQ+HluWNH1NPwwtrzHVf+8UJwxdeAqoS/Hs4trD9PBxNuVhtfRwp/A=="
        ),
        (
            "zstd",
            """
            KLUv/\
            QRoJQIAAgQOEpA9BoyBHER52DH8f917dXcJAfuusaUSOqYciFucyHs3gnBzEF4+gHhdxR6EZyzpjG0eiCdY4nUCAHcttNrWLAOpXTma
            """
        ),
    ]
    private static let limits = ContentDecoder.Limits(length: 8 << 20)

    private static func bytes(_ base64: String) -> [UInt8] { Array(Data(base64Encoded: base64)!) }

    private func decode(
        _ body: [UInt8], _ coding: String, step: Int? = nil, limits: ContentDecoder.Limits = limits
    ) throws(ContentDecodingError) -> [UInt8] {
        guard let step else {
            return try ContentDecoder.decode(body, codings: ContentCoding.list(coding), limits: limits)
        }
        var decoder = try ContentDecoder(contentEncoding: coding, limits: limits)
        for start in stride(from: 0, to: body.count, by: step) {
            try decoder.push(Array(body[start..<min(start + step, body.count)]))
        }
        return try decoder.finish()
    }

    private func error(
        _ body: [UInt8], _ coding: String, limits: ContentDecoder.Limits = limits
    ) -> ContentDecodingError? {
        do throws(ContentDecodingError) {
            _ = try decode(body, coding, limits: limits)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: 0..<5) func decodesHoweverItArrives(_ index: Int) throws {
        let (coding, base64) = Self.coded[index]
        for step in [nil, 1, 2, 7, 64] {
            #expect(try decode(Self.bytes(base64), coding, step: step) == Array(Self.text.utf8))
        }
    }

    /// No prefix counts as complete; the empty body is empty.
    @Test(arguments: 0..<5) func refusesEveryPrefix(_ index: Int) throws {
        let (coding, base64) = Self.coded[index]
        let body = Self.bytes(base64)
        for length in 1..<body.count {
            #expect(error(Array(body[..<length]), coding) == .truncated(coding: coding), "\(length)")
        }
        #expect(try decode([], coding) == [])
    }

    @Test(arguments: 0..<5) func refusesBytesAfterTheEnd(_ index: Int) {
        let (coding, base64) = Self.coded[index]
        let body = Self.bytes(base64)
        let found = error(body + [0], coding)
        if coding == "zstd" {
            #expect(
                found == .malformed(coding: "zstd", offset: body.count + 1, explanation: "unknown frame descriptor"))
        } else {
            #expect(found == .trailingBytes(coding: coding, offset: body.count))
        }
        #expect(error(body + Array("<html>".utf8), coding) != nil)
    }

    @Test func refusesASecondMember() {
        let member = Self.bytes(Self.coded[0].base64)
        #expect(error(member + member, "gzip") == .secondMember(offset: member.count))
    }

    @Test func readsFramesOfZstd() throws {
        let frame = Self.bytes(Self.coded[4].base64)
        let skippable: [UInt8] = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3]
        for step in [nil, 1, 5] {
            #expect(try decode(frame + skippable + frame, "zstd", step: step) == Array((Self.text + Self.text).utf8))
        }
    }

    @Test func undoesSeveralInReverse() throws {
        // br within gzip, by Python's gzip of the Brotli above.
        let gzipOfBrotli =
            """
            H4sIAAAAAAACAwFMALP/GwEBAASibab6XDYkUxXDq686mJOx4BjzgJsW14pUKSpVJnDIzQ+HluWNH1NPwwtrzHVf+8UJwxdeAqoS/\
            Hs4trD9PBxNuVhtfRwp/Dz02XFMAAAA
            """
        #expect(try decode(Self.bytes(gzipOfBrotli), "br, identity, X-GZIP") == Array(Self.text.utf8))
        #expect(error(Self.bytes(gzipOfBrotli), "gzip, br") != nil)
    }

    @Test func namesWhatIsUnknown() {
        #expect(error([1], "gzip, compress") == .unknownCoding("compress"))
        #expect(error([1], "\u{1B}[31mx") == .unknownCoding("\\u{1B}[31mx"))
        #expect(error([1], "gzip, gzip, gzip, gzip, gzip") == .tooManyCodings(limit: 4))
        #expect(error([1], ",, identity ,") == nil)
    }

    @Test func saysWhereItIsDamaged() throws {
        var body = Self.bytes(Self.coded[0].base64)
        body[body.count - 8] ^= 1
        #expect(
            error(body, "gzip")
                == .malformed(coding: "gzip", offset: body.count - 4, explanation: "incorrect data check"))
        for coding in ["gzip", "deflate", "br", "zstd"] {
            guard
                case .malformed(coding, _, let explanation) = error(Array("<html>not coded at all</html>".utf8), coding)
            else {
                Issue.record("\(coding)")
                continue
            }
            #expect(!explanation.isEmpty)
        }
    }

    /// 20 MiB of zeros in 39 bytes, in 658, and in 20 KiB.
    @Test func refusesBombs() throws {
        let brotli = Self.bytes("y///PwAkAOKxQHLv//j//weABEAcFoDu/V/+//8AkACIwwLQvf8B")
        #expect(error(brotli, "br", limits: .init(length: 64 << 20)) == .tooDense(coding: "br", limit: 200))
        #expect(error(brotli, "br", limits: .init(length: 64 << 20, ratio: .max)) == nil)
        #expect(error(brotli, "br", limits: .init(length: 1 << 20, ratio: .max)) == .tooLong(limit: 1 << 20))
        let program =
            """
            import gzip, base64; print('\"' + base64.b64encode(gzip.compress(gzip.compress(bytes(20 << 20)))).decode() \
            + '\"')
            """
        let gzip = try #require(PeerProgram.python.run(program, input: []) as? String)
        #expect(error(Self.bytes(gzip), "gzip, gzip") == .tooDense(coding: "gzip", limit: 200))
        let once = try decode(Self.bytes(gzip), "gzip")
        #expect(error(once, "gzip") == .tooDense(coding: "gzip", limit: 200))
        #expect(error(once, "gzip", limits: .init(length: 64 << 20, ratio: 2_000)) == nil)
    }

    @Test func boundsTheWindowOfZstd() {
        // A frame of 128 MiB window: magic, descriptor without single segment, window descriptor 17 << 3.
        #expect(error([0x28, 0xB5, 0x2F, 0xFD, 0x00, 17 << 3, 0x01, 0x00, 0x00], "zstd") != nil)
    }

    @Test func survivesDamage() {
        var random = SeededGenerator(seed: 6)
        for round in 0..<2_000 {
            let (coding, base64) = Self.coded[round % 5]
            _ = error(Self.bytes(base64).mutated(by: &random), coding, limits: .init(length: 1 << 20))
        }
    }
}
