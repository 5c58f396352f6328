import Testing

@testable import PinproxyHTTPWire

/// Whether a 206 answers the requested range.
@Suite struct WantedPartTests {
    @Test(arguments: [
        ("", WantedPart.whole), ("Range: bytes=0-99\r\n", .bytes(first: 0, last: 99)),
        ("Range: Bytes=5-\r\n", .bytes(first: 5, last: nil)),
        ("Range: bytes=-7\r\n", .end(length: 7)), ("range:bytes=0-0\r\n", .bytes(first: 0, last: 0)),
        // Ranges that a server has to ignore, or may answer with several parts.
        ("Range: bytes=0-1,4-5\r\n", .other), ("Range: bytes=9-5\r\n", .other), ("Range: bytes=-\r\n", .other),
        ("Range: bytes=\r\n", .other),
        ("Range: bytes\r\n", .other), ("Range:\r\n", .other), ("Range: items=0-1\r\n", .other),
        ("Range: bytes=0-1x\r\n", .other),
        ("Range: bytes=99999999999999999999-\r\n", .other), ("Range: bytes=0-1\r\nRange: bytes=0-1\r\n", .other),
    ])
    func theWantedPartIsRead(_ fields: String, _ part: WantedPart) throws {
        let head = try #require(request("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n").head)
        #expect(head.wantedPart == part)
    }

    @Test func aHeadLeavesNothingToTheNext() throws {
        var parser = HeadParser(limit: 1000)
        var head = RequestHead()
        for (text, part) in [("Range: bytes=0-1\r\n", WantedPart.bytes(first: 0, last: 1)), ("", .whole)] {
            let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(text)\r\n".utf8)
            _ = parser.parseRequest(bytes.span, into: &head)
            parser.reset()
            #expect(head.wantedPart == part)
        }
    }

    private func defect(
        _ fields: String, _ response: String, _ method: PinproxyHTTPWire.Method = .get
    ) throws -> WireError.Code? {
        let asked = try #require(request("\(method.text) / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n").head)
        let bytes = Array("HTTP/1.1 \(response)\r\n\r\n".utf8)
        let head = try #require(HTTPWireTests.response(String(decoding: bytes, as: UTF8.self), to: method).head)
        return head.defect(answering: asked.wantedPart, in: bytes.span)?.code
    }

    @Test(arguments: [
        ("", "206 P\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10", WireError.Code.unaskedPart),
        ("", "206 P\r\nContent-Type: multipart/byteranges; boundary=x", .unaskedPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Type: multipart/byteranges; boundary=x", .wrongPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=5-9\r\n", "206 P\r\nContent-Range: bytes 4-9/100\r\nContent-Length: 6", .wrongPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes 0-10/100\r\nContent-Length: 11", .wrongPart),
        ("Range: bytes=5-\r\n", "206 P\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=-5\r\n", "206 P\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=-5\r\n", "206 P\r\nContent-Range: bytes 0-9/*\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 50", .wrongPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes */100\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: items 0-9/100\r\nContent-Length: 10", .wrongPart),
        ("Range: bytes=0-1,4-5\r\n", "206 P\r\nContent-Length: 10", .wrongPart),
        (
            "Range: bytes=-9\r\n", "206 P\r\nContent-Range: bytes 0-9223372036854775807/*\r\nContent-Length: 10",
            .wrongPart
        ),
        ("Range: bytes=0-1,4-5\r\n", "206 P\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 9", .wrongPart),
    ])
    func whatWasNotAskedForIsMalformed(_ fields: String, _ response: String, _ code: WireError.Code) throws {
        #expect(try defect(fields, response) == code)
    }

    @Test(arguments: [
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes 0-9/100\r\nContent-Length: 10"),
        // Less than requested.
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes 2-4/100\r\nContent-Length: 3"),
        ("Range: bytes=0-9\r\n", "206 P\r\nContent-Range: bytes 0-4/5\r\nTransfer-Encoding: chunked"),
        ("Range: bytes=5-\r\n", "206 P\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5"),
        ("Range: bytes=-5\r\n", "206 P\r\nContent-Range: bytes 5-9/10\r\nContent-Length: 5"),
        ("Range: bytes=-50\r\n", "206 P\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10"),
        ("Range: bytes=-5\r\n", "206 P\r\nContent-Range: bytes 5-9/*\r\nContent-Length: 5"),
        ("Range: bytes=0-1,4-5\r\n", "206 P\r\nContent-Type: Multipart/ByteRanges; boundary=x"),
        ("Range: bytes=0-1,4-5\r\n", "206 P\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10"),
        ("Range: items=0-1\r\n", "206 P\r\nContent-Range: items 0-1/9\r\nContent-Length: 10"),
        ("", "304 N\r\nContent-Length: 10"), ("Range: bytes=0-9\r\n", "304 N"), ("", "200 O"),
        ("Range: bytes=0-9\r\n", "200 O"), ("Range: bytes=0-9\r\n", "416 R\r\nContent-Range: bytes */5"),
    ])
    func whatWasAskedForIsWell(_ fields: String, _ response: String) throws {
        #expect(try defect(fields, response) == nil)
        if response.contains("Content-Length: 10"), response.hasPrefix("206") {
            #expect(try defect(fields, response, .head) == nil)
        }
    }

    /// The request as sent counts, not as received.
    @Test func editsCount() {
        var edits = HeadEdits()
        var part = WantedPart.whole
        edits.append(.addIfAbsent("bytes=0-1"), "Range")
        part.apply(edits)
        #expect(part == .bytes(first: 0, last: 1))
        var removal = HeadEdits()
        removal.append(.remove, "range")
        part.apply(removal)
        #expect(part == .whole)
        part.apply(edits)
        var another = HeadEdits()
        another.append(.addIfAbsent("bytes=5-6"), "Range")
        part.apply(another)
        #expect(part == .bytes(first: 0, last: 1))
        another.append(.set("bytes=7-8"), "Range")
        part.apply(another)
        #expect(part == .bytes(first: 7, last: 8))
    }
}
