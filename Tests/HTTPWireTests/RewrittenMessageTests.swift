import HTTPWire
import Testing

@Suite struct RewrittenMessageTests {
    private func request(_ text: String) throws -> OwnedRequest { try OwnedRequest(Array(text.utf8)) }
    private func text(_ request: OwnedRequest) -> String { String(decoding: request.message, as: UTF8.self) }

    @Test func anotherTargetLeavesTheRestAsItWas() throws {
        let old = try request("GET /a HTTP/1.1\r\nHost: a.test\r\nX:  1 \r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        let new = try old.rewritten(target: Array("/a?b=c".utf8))
        #expect(text(new) == "GET /a?b=c HTTP/1.1\r\nHost: a.test\r\nX:  1 \r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        #expect(new.head.framing == .length(3))
    }

    /// One length, whatever the old framing was: a second one would be another request to somebody.
    @Test(arguments: [
        "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", "",
    ])
    func anotherBodyHasOneFraming(framing: String) throws {
        let old = try request(
            "POST /a HTTP/1.1\r\nHost: a.test\r\n\(framing)Content-Type: a/b\r\nExpect: 100-continue\r\n"
                + "Content-MD5: x\r\ncontent-digest: y\r\nRepr-Digest: z\r\nX: 1\r\n\r\n")
        let new = try old.rewritten(contentType: "c/d", bodyLength: 5)
        #expect(text(new) == "POST /a HTTP/1.1\r\nHost: a.test\r\nX: 1\r\nContent-Type: c/d\r\nContent-Length: 5\r\n\r\n")
        #expect(new.head.framing == .length(5) && !new.head.expectsContinue)
    }

    @Test func theVersionStays() throws {
        let old = try request("POST /a HTTP/1.0\r\nContent-Length: 3\r\n\r\n")
        #expect(try text(old.rewritten(bodyLength: 0)) == "POST /a HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func aTargetThatWouldBeTwoLinesIsRefused() throws {
        let old = try request("GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n")
        for target in ["/a b", "/a\r\nX: 1", "", "/\u{0}"] {
            #expect(throws: WireError.self) { try old.rewritten(target: Array(target.utf8)) }
        }
    }

    @Test func aResponseWithAnotherBodyLosesWhatSpeaksOfTheOldOne() throws {
        let old = try OwnedResponse(
            Array(
                """
                HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\ncontent-encoding: gzip\r\nETag: "a"\r\n\
                Digest: x\r\nContent-Digest: y\r\nRepr-Digest: z\r\nContent-MD5: m\r\nAccept-Ranges: bytes\r\nX: 1\r\n\r\n
                """.utf8))
        let new = try #require(old.withBody(of: 7))
        #expect(new.view.head.framing == .length(7))
        let bytes = new.view.bytes
        let text = String(decoding: bytes.withUnsafeBufferPointer { Array($0) }, as: UTF8.self)
        #expect(text == "HTTP/1.1 200 Fine\r\nETag: W/\"a\"\r\nX: 1\r\nContent-Length: 7\r\n\r\n")
    }

    @Test func aWeakValidatorStaysAsItIs() throws {
        let old = try OwnedResponse(Array("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nETag: W/\"a\"\r\n\r\n".utf8))
        let new = try #require(old.withBody(of: 0))
        let text = String(decoding: new.view.bytes.withUnsafeBufferPointer { Array($0) }, as: UTF8.self)
        #expect(text == "HTTP/1.1 200 OK\r\nETag: W/\"a\"\r\nContent-Length: 0\r\n\r\n")
    }
}
