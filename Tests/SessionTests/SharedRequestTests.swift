import PinproxyHTTPWire
import Testing

@testable import PinproxySession

/// Which requests are equal to an origin, so that one response serves both.
@Suite struct SharedRequestTests {
    private func request(_ fields: [UInt8]) throws -> OwnedRequest {
        try OwnedRequest(Array("GET /x HTTP/1.1\r\nHost: a.test\r\n".utf8) + fields + Array("\r\n\r\n".utf8))
    }

    private func fields(_ text: String) throws -> [SharedFetches.Key.Field] { try request(Array(text.utf8)).fields }

    /// `X-Key: k` with bytes after it.
    private func key(_ bytes: [UInt8]) -> [UInt8] { Array("X-Key: k".utf8) + bytes }

    /// Keys that aren't UTF-8, or that look alike, belong to different users.
    @Test(
        arguments: [([0xFF], [0xFE]), ([0xC3, 0xA9], [0x65, 0xCC, 0x81]), ([0x80], [0xEF, 0xBF, 0xBD])]
            as [([UInt8], [UInt8])])
    func valuesAreComparedByteForByte(_ one: [UInt8], _ other: [UInt8]) throws {
        #expect(try request(key(one)).fields != request(key(other)).fields)
        #expect(try request(key(one)).fields == request(key(one)).fields)
        let response = try OwnedResponse(Array("HTTP/1.1 200 OK\r\nVary: X-Key\r\nContent-Length: 0\r\n\r\n".utf8))
        #expect(try !request(key(one)).agrees(with: request(key(other)), in: response))
        #expect(try request(key(one)).agrees(with: request(key(one)), in: response))
    }

    @Test func namesOrderAndCaseDoNotCount() throws {
        #expect(try fields("A: 1\r\nb: 2") == fields("B: 2\r\na: 1"))
        // But the order of one name's values matters, and so do their contents.
        #expect(try fields("A: 1\r\nA: 2") != fields("A: 2\r\nA: 1"))
        #expect(try fields("A: x") != fields("A: X"))
        #expect(try fields("A: 1\r\nA: 2") != fields("A: 1, 2"))
    }

    @Test(arguments: ["User-Agent", "Accept-Language", "Proxy-Authorization", "TE"])
    func someFieldsDoNotCount(_ name: String) throws {
        #expect(try fields("\(name): a\r\nX: 1") == fields("\(name): b\r\nX: 1"))
    }

    @Test(arguments: [
        "Accept", "Accept-Encoding", "Accept-Charset", "X-Api-Key", "X-Original-URL", "X-HTTP-Method-Override",
        "X-Forwarded-For", "Forwarded", "Via",
        "Origin", "Referer", "Authorization", "Cookie", "Range", "If-Range", "Max-Forwards", "PRIVATE-TOKEN", "DPoP",
        "Sec-Fetch-Site",
    ])
    func allOthersDo(_ name: String) throws {
        #expect(try fields("\(name): a\r\nX: 1") != fields("\(name): b\r\nX: 1"))
    }
}
