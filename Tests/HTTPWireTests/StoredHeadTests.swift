import Testing

@testable import PinproxyHTTPWire

/// The heads that a cache stores and serves.
@Suite struct StoredHeadTests {
    private static func response(_ fields: [String], status: String = "200 OK") throws -> OwnedResponse {
        try OwnedResponse(Array((["HTTP/1.1 \(status)"] + fields + ["", ""]).joined(separator: "\r\n").utf8))
    }

    private static func lines(_ response: OwnedResponse?) -> [String] {
        guard let response else { return [] }
        return String(decoding: response.message, as: UTF8.self).split(separator: "\r\n").map(String.init)
    }

    private static let origins = [
        "Date: Mon, 12 Jan 1970 13:46:40 GMT", "ETag: \"1\"", "Last-Modified: l", "Content-Type: t",
        "Content-Encoding: gzip", "Vary: v",
        "Expires: e", "Cache-Control: c", "Content-Location: /x", "Age: 5", "Repr-Digest: r", "Content-Digest: c",
        "Content-MD5: m", "Access-Control-Allow-Origin: *", "X: y", "Content-Length: 10",
    ]

    @Test func theConnectionIsForgotten() throws {
        let response = try Self.response([
            "Date: Mon, 12 Jan 1970 13:46:40 GMT", "Connection: Hop, close, Vary", "Hop: 1", "Keep-Alive: 1", "Vary: a",
            "Proxy-Connection: x",
            "Transfer-Encoding: chunked", "Trailer: t", "TE: t", "Upgrade: h2c", "Proxy-Authenticate: Basic",
            "Proxy-Authentication-Info: x", "Set-Cookie: a=b", "X: y",
        ])
        #expect(
            Self.lines(response.stored(length: 3, received: 0))
                == ["HTTP/1.1 200 OK", "Date: Mon, 12 Jan 1970 13:46:40 GMT", "Vary: a", "X: y", "Content-Length: 3"])
    }

    @Test func whatHasNoDateGetsOne() throws {
        let date = "Date: Thu, 01 Jan 1970 00:00:00 GMT"
        #expect(
            Self.lines(try Self.response([]).stored(length: 0, received: 0))
                == ["HTTP/1.1 200 OK", date, "Content-Length: 0"])
        #expect(
            Self.lines(try Self.response(["Date: today"]).stored(length: 0, received: 0))
                == ["HTTP/1.1 200 OK", date, "Content-Length: 0"])
        let empty = try Self.response([], status: "204 No Content")
        #expect(Self.lines(empty.stored(length: 0, received: 0)) == ["HTTP/1.1 204 No Content", date])
    }

    @Test func theAnswerToHeadHasNoBody() throws {
        let head = try Self.response(["Content-Length: 5"]).withoutBody
        #expect(head.head.bodyLength == .none && Self.lines(head) == ["HTTP/1.1 200 OK", "Content-Length: 5"])
    }

    @Test func notModifiedSaysWhatCachesNeed() throws {
        let answer = try #require(try Self.response(Self.origins).notModified())
        #expect(answer.head.status == 304 && answer.head.bodyLength == .none)
        #expect(
            Self.lines(answer) == [
                "HTTP/1.1 304 Not Modified", "Date: Mon, 12 Jan 1970 13:46:40 GMT", "ETag: \"1\"", "Vary: v",
                "Expires: e", "Cache-Control: c",
                "Content-Location: /x", "Age: 5", "Access-Control-Allow-Origin: *",
            ])
        #expect(
            Self.lines(try Self.response(["Last-Modified: l", "Content-Type: t"]).notModified())
                == ["HTTP/1.1 304 Not Modified", "Last-Modified: l"])
    }

    @Test func aPartSaysWhereItIs() throws {
        let response = try Self.response(Self.origins + ["Content-Range: old"])
        let part = try #require(response.part(2..<5, of: 10))
        let kept = Self.origins.filter {
            !$0.hasPrefix("Content-Length") && !$0.hasPrefix("Content-D") && $0 != "Content-MD5: m"
        }
        #expect(
            Self.lines(part)
                == ["HTTP/1.1 206 Partial Content"] + kept + ["Content-Range: bytes 2-4/10", "Content-Length: 3"])
        #expect(part.head.bodyLength == .known(3))
        #expect(part.head.defect(answering: .bytes(first: 2, last: 4), in: part.view.bytes) == nil)
        for (range, complete) in [(2..<2, 10), (2..<11, 10), (0..<0, 0)] as [(Range<UInt64>, UInt64)] {
            #expect(response.part(range, of: complete) == nil)
        }
        let most = UInt64(Int64.max)
        #expect(Self.lines(response.part(0..<most, of: most)).last == "Content-Length: 9223372036854775807")
        #expect(
            Self.lines(part.whole(of: 10)) == ["HTTP/1.1 200 OK"] + kept + ["Content-Length: 10"])
    }

    @Test func unsatisfiedSaysHowLongItIs() throws {
        let answer = try #require(try Self.response(Self.origins).unsatisfied(of: 10))
        #expect(answer.head.bodyLength == .known(0))
        #expect(
            Self.lines(answer) == [
                "HTTP/1.1 416 Range Not Satisfiable", "Date: Mon, 12 Jan 1970 13:46:40 GMT", "Vary: v",
                "Access-Control-Allow-Origin: *",
                "Content-Range: bytes */10", "Content-Length: 0",
            ])
    }
}

@Suite struct DateTextTests {
    @Test(
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
            (.max, "Fri, 31 Dec 9999 23:59:59 GMT"), (.min, "Mon, 01 Jan 0001 00:00:00 GMT"),
        ] as [(Int64, String)])
    func aDateIsWritten(_ time: Int64, _ text: String) {
        #expect(HTTPDate.text(time) == text)
    }

    @Test func aWrittenDateReadsAsItself() {
        for time in stride(from: -62_135_596_800 as Int64, to: 253_402_300_800, by: 87_654_321) {
            #expect(HTTPDate.parse(Array(HTTPDate.text(time).utf8).span) == time)
        }
    }
}

@Suite struct EntityTagListTests {
    private func list(_ text: String) -> [String]? {
        EntityTag.list(Array(text.utf8).span)?.map { String(decoding: $0.text, as: UTF8.self) }
    }

    @Test(
        arguments: [
            ("\"a\"", ["\"a\""]), ("\"a\", W/\"b\"", ["\"a\"", "W/\"b\""]), (" ,\"a\",,\t\"b\" ,", ["\"a\"", "\"b\""]),
            ("\"a,b\",\"\"", ["\"a,b\"", "\"\""]), ("", []), ("*", nil), ("a", nil), ("\"a", nil), ("\"a\"b", nil),
            ("\"a\"\"b\"", nil), ("w/\"a\"", nil), ("W/a", nil), ("WW/\"a\"", nil), ("W/ \"a\"", nil), ("\"a b\"", nil),
            ("\"a\", b", nil), ("\"a\", \"", nil), ("\"a\", *", nil), ("\"a\" \"b\"", nil),
        ] as [(String, [String]?)])
    func tagsAreRead(_ text: String, _ tags: [String]?) {
        #expect(list(text) == tags)
    }

    /// A prefix is malformed, or has the first tags.
    @Test func everyPrefixIsRead() {
        let text = "W/\"a,\", \"b\" ,\"\""
        for count in 0...text.utf8.count {
            guard let tags = list(String(text.prefix(count))) else { continue }
            #expect(["W/\"a,\"", "\"b\"", "\"\""].starts(with: tags))
        }
    }
}
