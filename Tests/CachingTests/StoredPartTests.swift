import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct StoredPartTests {
    private static let body = Array("abcdef".utf8)

    private static func part(
        _ bytes: ClosedRange<Int>, tag: String = "\"1\"", of complete: String = "6"
    ) throws -> (
        StoredPart?, CachedTraits
    ) {
        let traits = try Trial.traits(
            "ETag: \(tag)", "Content-Range: bytes \(bytes.lowerBound)-\(bytes.upperBound)/\(complete)", status: 206)
        return (StoredPart(traits, bodyLength: UInt64(bytes.count)), traits)
    }

    /// Every pair of parts of six bytes is combined exactly if no byte between them is missing.
    @Test func partsThatTouchAreOne() throws {
        for first in 0..<6 {
            for last in first..<6 {
                let stored = try #require(try Self.part(first...last).0)
                for newFirst in 0..<6 {
                    for newLast in newFirst..<6 {
                        let new = try #require(try Self.part(newFirst...newLast).0)
                        let touches = newFirst <= last + 1 && first <= newLast + 1
                        let combined = stored.combined(with: new)
                        #expect((combined != nil) == touches)
                        guard let combined else { continue }
                        let bodies = [Array(Self.body[first...last]), Array(Self.body[newFirst...newLast])]
                        let bytes = combined.pieces.flatMap { piece in
                            bodies[piece.isNew ? 1 : 0][Int(piece.bytes.lowerBound)..<Int(piece.bytes.upperBound)]
                        }
                        let union = min(first, newFirst)...max(last, newLast)
                        #expect(bytes == Array(Self.body[union]))
                        #expect(combined.part.bytes == UInt64(union.lowerBound)..<UInt64(union.upperBound) + 1)
                        #expect(combined.part.isWhole == (union == 0...5))
                        #expect(combined.pieces.filter(\.isNew).map(\.bytes.count) == [newLast - newFirst + 1])
                    }
                }
            }
        }
    }

    @Test func otherVersionsStayApart() throws {
        let stored = try #require(try Self.part(0...2).0)
        #expect(stored.combined(with: try #require(try Self.part(3...5, tag: "\"2\"").0)) == nil)
        #expect(stored.combined(with: try #require(try Self.part(3...5, of: "7").0)) == nil)
        #expect(try Self.part(3...5, tag: "W/\"1\"").0 == nil)
        #expect(try Self.part(3...5, of: "*").0 == nil)
    }

    @Test func whatIsNoPartIsNone() throws {
        let range = "Content-Range: bytes 0-2/6"
        let tag = "ETag: \"1\""
        #expect(StoredPart(try Trial.traits(tag, range, status: 206), bodyLength: 2) == nil)
        #expect(StoredPart(try Trial.traits(tag, range, range, status: 206), bodyLength: 3) == nil)
        #expect(StoredPart(try Trial.traits(tag, "Content-Range: bytes */6", status: 206), bodyLength: 3) == nil)
        #expect(StoredPart(try Trial.traits(tag, status: 206), bodyLength: 3) == nil)
        #expect(StoredPart(try Trial.traits(tag, status: 404), bodyLength: 3) == nil)
        #expect(StoredPart(try Trial.traits(range, status: 206), bodyLength: 3) == nil)
        // The longest that a Content-Range can express.
        let far = try Trial.traits(
            tag, "Content-Range: bytes 9223372036854775806-9223372036854775806/9223372036854775807", status: 206)
        #expect(StoredPart(far, bodyLength: 1)?.bytes.upperBound == UInt64(Int64.max))
    }

    @Test func aWholeResponseOfTheVersionCompletesAPart() throws {
        let stored = try #require(try Self.part(1...2).0)
        let whole = try #require(StoredPart(try Trial.traits("ETag: \"1\""), bodyLength: 6))
        #expect(stored.combined(with: whole)?.pieces == [CombinedPart.Piece(isNew: true, bytes: 0..<6)])
        #expect(stored.combined(with: whole)?.part.isWhole == true)
    }

    @Test func theHeadSaysWhatIsThere() throws {
        func head(_ range: String) throws -> OwnedResponse {
            try Trial.response(
                [
                    "Date: \(Trial.date)", "ETag: \"1\"", "X: \(range)", "Content-Range: bytes \(range)/6",
                    "Content-Length: 3",
                ],
                status: 206)
        }
        func combined(_ stored: OwnedResponse, _ new: OwnedResponse) throws -> String? {
            let old = try #require(StoredPart(CachedTraits(stored.view), bodyLength: 3))
            let part = try #require(StoredPart(CachedTraits(new.view), bodyLength: 3))
            return old.combined(with: part)?.head(of: stored, with: new.view, received: Trial.arrival)?.text
        }
        let date = "Date: \(Trial.date)\r\n"
        let whole = "HTTP/1.1 200 OK\r\n\(date)ETag: \"1\"\r\nX: 3-5\r\nContent-Length: 6\r\n\r\n"
        #expect(try combined(try head("0-2"), try head("3-5")) == whole)
        let undated = try Trial.response(["ETag: \"1\"", "Content-Range: bytes 2-4/6"], status: 206)
        #expect(
            try combined(try head("0-2"), undated) == """
                HTTP/1.1 206 Partial Content\r
                X: 0-2\r
                ETag: "1"\r
                Date: \(Trial.date)\r
                Content-Range: bytes 0-4/6\r
                Content-Length: 5\r
                \r\n
                """)
    }
}
