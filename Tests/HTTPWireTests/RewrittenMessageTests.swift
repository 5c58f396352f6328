import Foundation
import PinproxyHTTPWire
import Testing

@Suite struct RewrittenMessageTests {
    private func request(_ text: String) throws -> OwnedRequest { try OwnedRequest(Array(text.utf8)) }
    private func text(_ request: OwnedRequest) -> String { String(decoding: request.message, as: UTF8.self) }

    @Test func anotherTargetLeavesTheRestAsItWas() throws {
        let old = try request(
            "GET /a HTTP/1.1\r\nHost: a.test\r\nX:  1 \r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        let new = try old.rewritten(target: Array("/a?b=c".utf8))
        #expect(
            text(new)
                == "GET /a?b=c HTTP/1.1\r\nHost: a.test\r\nX:  1 \r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        #expect(new.head.bodyLength == .known(3))
    }

    /// A single length, whatever the old framing was: a second one could smuggle another request.
    @Test(arguments: [
        "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", "",
    ])
    func anotherBodyHasOneFraming(framing: String) throws {
        let old = try request(
            "POST /a HTTP/1.1\r\nHost: a.test\r\n\(framing)Content-Type: a/b\r\nExpect: 100-continue\r\n"
                + "Content-MD5: x\r\ncontent-digest: y\r\nRepr-Digest: z\r\nX: 1\r\n\r\n")
        let new = try old.rewritten(contentType: "c/d", bodyLength: 5)
        #expect(
            text(new) == "POST /a HTTP/1.1\r\nHost: a.test\r\nX: 1\r\nContent-Type: c/d\r\nContent-Length: 5\r\n\r\n")
        #expect(new.head.bodyLength == .known(5) && !new.head.expectsContinue)
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
                HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\ncontent-encoding: gzip\r\nETag: \
                "a"\r\n\
                Digest: x\r\nContent-Digest: y\r\nRepr-Digest: z\r\nContent-MD5: m\r\nAccept-Ranges: bytes\r\nX: \
                1\r\n\r\n
                """.utf8))
        let new = try #require(old.withBody(of: 7))
        #expect(new.view.head.bodyLength == .known(7))
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

/// The fields that are sent along to a redirect's target.
@Suite struct RedirectedRequestTests {
    private static let fields = [
        "Accept: a", "accept-encoding: b", "Accept-Language: c", "User-Agent: d", "Cache-Control: e", "Pragma: f",
        "Via: 1.1 g", "Range: bytes=0-1",
        "Authorization: h", "Cookie: i", "Cookie2: j", "Referer: k", "Origin: l", "X-Api-Key: m", "PRIVATE-TOKEN: n",
        "If-None-Match: \"o\"",
        "If-Modified-Since: p", "If-Match: *", "If-Unmodified-Since: q", "Forwarded: r", "X-Forwarded-For: s",
        "From: t", "Sec-Fetch-Mode: u",
    ]
    private static let ofBody = [
        "Content-Type: v", "Content-Length: 3", "Content-Language: w", "Digest: x", "Expect: 100-continue",
    ]

    private func redirected(_ redirection: OwnedRequest.Redirection, _ more: [String] = []) throws -> [String] {
        let lines = ["POST /old?a HTTP/1.1", "Host: old.test"] + Self.fields + Self.ofBody + more
        let old = try OwnedRequest(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
        let url = try RequestURL("https://new.test:8443/x?y")
        return try String(decoding: old.redirected(to: url, redirection).message, as: UTF8.self).components(
            separatedBy: "\r\n"
        ).dropLast(2)
    }

    private static let first = ["POST https://new.test:8443/x?y HTTP/1.1", "Host: new.test:8443"]

    @Test func allGoesAlongWithinAnOrigin() throws {
        #expect(try redirected([]) == Self.first + Self.fields + Self.ofBody)
        #expect(try redirected(.becomesGET) == ["GET https://new.test:8443/x?y HTTP/1.1", Self.first[1]] + Self.fields)
    }

    @Test func aProgramsFieldsGoAlongButForCredentials() throws {
        let secret = ["Authorization", "Cookie", "Cookie2"]
        let left = Self.fields.filter { field in !secret.contains { field.hasPrefix($0 + ":") } }
        #expect(try redirected(.leavesCredentials) == Self.first + left + Self.ofBody)
    }

    @Test func fewGoToAnotherOrigin() throws {
        let few = Array(Self.fields.prefix(8))
        #expect(try redirected(.leavesOrigin) == Self.first + few + Self.ofBody)
        #expect(
            try redirected([.leavesOrigin, .becomesGET]) == ["GET https://new.test:8443/x?y HTTP/1.1", Self.first[1]]
                + few)
        #expect(try redirected(.leavesOrigin, ["If-Range: \"a\""]) == Self.first + few.dropLast() + Self.ofBody)
    }
}
