import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct RangeAnswerTests {
    private func answer(
        _ fields: String..., of stored: [String] = [], status: Int = 200, length: UInt64 = 10
    ) throws -> RangeAnswer {
        let traits = CachedTraits(try Trial.response(["ETag: \"1\""] + stored, status: status).view)
        let head = "GET / HTTP/1.1\r\nHost: a\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return RangeAnswer(CacheRequest(try OwnedRequest(Array(head.utf8)).view), of: traits, bodyLength: length)
    }

    private func part(_ bytes: Range<UInt64>, of complete: UInt64 = 10, at offset: UInt64? = nil) -> RangeAnswer {
        .part(ServedPart(bytes: bytes, complete: complete, offset: offset ?? bytes.lowerBound))
    }

    @Test(arguments: [
        ("0-4", 0..<5), ("9-9", 9..<10), ("5-", 5..<10), ("5-99", 5..<10), ("0-", 0..<10), ("-3", 7..<10),
        ("-99", 0..<10), ("0-9223372036854775807", 0..<10),
    ])
    func aWholeGivesItsParts(_ range: String, _ bytes: Range<UInt64>) throws {
        #expect(try answer("Range: bytes=\(range)") == part(bytes))
    }

    @Test func otherRequestsGetTheWhole() throws {
        for range in ["bytes=0-1,3-4", "items=0-1", "bytes=4-2", "bytes=x", "bytes=-", "bytes"] {
            #expect(try answer("Range: \(range)") == .whole, "\(range)")
        }
        #expect(try answer() == .whole)
        #expect(try answer("Range: bytes=0-1", "Range: bytes=2-3") == .whole)
        #expect(try answer("Range: bytes=0-1", status: 404) == .whole)
        #expect(try answer("Range: bytes=-5", length: 0) == .whole)
    }

    @Test(arguments: ["10-", "10-20", "-0"]) func nothingOfItIsThere(_ range: String) throws {
        #expect(try answer("Range: bytes=\(range)") == .unsatisfied(of: 10))
    }

    @Test func anEmptyWholeHasNoParts() throws {
        #expect(try answer("Range: bytes=0-", length: 0) == .unsatisfied(of: 0))
    }

    @Test func anotherVersionIsGivenWhole() throws {
        #expect(try answer("Range: bytes=0-1", "If-Range: \"1\"") == part(0..<2))
        #expect(try answer("Range: bytes=0-1", "If-Range: \"2\"") == .whole)
        #expect(try answer("Range: bytes=99-", "If-Range: \"2\"") == .whole)
        #expect(try answer("Range: bytes=0-1", "If-Range: \"1\"", "If-Range: \"1\"") == .whole)
    }

    @Test func headIgnoresRanges() throws {
        let request = try Trial.request("Range: bytes=0-1", method: "HEAD")
        #expect(RangeAnswer(request, of: try Trial.traits("ETag: \"1\""), bodyLength: 10) == .whole)
        let part = try Trial.traits("ETag: \"1\"", "Content-Range: bytes 0-4/10", status: 206)
        #expect(RangeAnswer(request, of: part, bodyLength: 5) == .ask)
    }

    /// For bytes 2 to 5 of ten.
    @Test(arguments: [
        ("bytes=2-5", 2..<6), ("bytes=3-4", 3..<5), ("bytes=1-4", nil), ("bytes=5-6", nil), ("bytes=2-", nil),
        ("bytes=-5", nil), ("bytes=2-3,4-5", nil),
    ])
    func aPartGivesWhatIsWithin(_ range: String, _ bytes: Range<UInt64>?) throws {
        let given = try answer("Range: \(range)", of: ["Content-Range: bytes 2-5/10"], status: 206, length: 4)
        #expect(given == bytes.map { part($0, at: $0.lowerBound - 2) } ?? .ask)
    }

    @Test func whatAPartDoesNotHaveIsAsked() throws {
        let stored = ["Content-Range: bytes 2-5/10"]
        #expect(try answer(of: stored, status: 206, length: 4) == .ask)
        #expect(try answer("Range: bytes=2-3", of: stored, status: 206, length: 3) == .ask)
        #expect(try answer("Range: bytes=2-3", "If-Range: \"2\"", of: stored, status: 206, length: 4) == .ask)
        #expect(try answer("Range: bytes=10-", of: stored, status: 206, length: 4) == .unsatisfied(of: 10))
        let last = try answer("Range: bytes=-2", of: ["Content-Range: bytes 7-9/10"], status: 206, length: 3)
        #expect(last == part(8..<10, at: 1))
    }

    /// Every range of up to five bytes, compared with sets of offsets.
    @Test func itGivesTheBytesThatAreMeant() throws {
        for complete in UInt64(0)...4 {
            for first in UInt64(0)...5 {
                for last in first...5 {
                    let wanted = Set(first...last).intersection(0..<complete)
                    let expected =
                        wanted.isEmpty
                        ? .unsatisfied(of: complete) : part(wanted.min()!..<wanted.max()! + 1, of: complete)
                    #expect(try answer("Range: bytes=\(first)-\(last)", length: complete) == expected)
                }
            }
        }
    }
}
