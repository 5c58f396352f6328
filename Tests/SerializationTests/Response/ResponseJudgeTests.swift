import Testing

@testable import PinproxySerialization

/// The verdicts by rules, as the proxy requests them.
@Suite struct ResponseJudgeTests {
    private func rules(
        _ serializers: [ResponseRules.Serializer] = [.http], status: [String]? = nil, types: [String]? = nil,
        maxBody: Int? = nil, removeNullValues: Bool = false, oversize: ResponseRules.Oversize = .refuse
    ) throws -> ResponseRules {
        var rules = ResponseRules()
        rules.serializers = serializers
        rules.status = try status?.map { try StatusRange($0) }
        rules.contentTypes = try types?.map { try MediaRange($0) }
        rules.maxBody = maxBody
        rules.removeNullValues = removeNullValues
        rules.oversize = oversize
        return rules
    }

    private func judge(_ rules: ResponseRules) throws -> ResponseJudge {
        try #require(ResponseJudge(rules))
    }

    private func head(
        _ status: Int = 200, _ type: String? = "application/json", length: Int? = 2, isHEAD: Bool = false,
        coding: String? = nil
    ) -> ResponseHead {
        // According to the framing of such a message.
        let hasNone = isHEAD || status < 200 || [204, 205, 304].contains(status)
        return ResponseHead(
            status: status, contentType: type.map { ContentType($0) }, contentEncoding: coding,
            body: hasNone ? .none : length.map { .length($0) } ?? .unknownLength)
    }

    /// A verdict as a word and its text.
    private func text(_ verdict: HeadVerdict) -> String {
        switch verdict {
        case .pass(nil): "pass"
        case .pass(let limit?): "pass up to \(limit)"
        case .hold(_, nil): "hold"
        case .hold(_, let limit?): "hold up to \(limit)"
        case .refuseUnlessEmpty(let error): "unless empty: \(error)"
        case .refuse(let error): "\(error)"
        }
    }

    private func verdict(_ rules: ResponseRules, _ head: ResponseHead) throws -> String {
        text(try judge(rules).verdict(on: head, inspectedBody: 1 << 20))
    }

    private func body(
        _ rules: ResponseRules, _ body: [UInt8], _ head: ResponseHead? = nil, inspectedBody: Int = 1 << 20
    ) throws -> BodyVerdict {
        guard
            case .hold(let judgement, _) = try judge(rules).verdict(
                on: head ?? self.head(length: body.count), inspectedBody: inspectedBody)
        else {
            Issue.record("the body is not asked for")
            return .pass
        }
        return judgement.verdict(on: body)
    }

    private func isPass(_ verdict: BodyVerdict) -> Bool { if case .pass = verdict { true } else { false } }

    private func error(_ verdict: BodyVerdict) -> ResponseSerializationError? {
        if case .refuse(let error) = verdict { error } else { nil }
    }

    @Test func asksForNothingWithoutRules() throws {
        #expect(ResponseJudge(ResponseRules()) == nil)
        var rules = ResponseRules()
        rules.enforcement = .report
        rules.oversize = .pass
        #expect(ResponseJudge(rules) == nil)
    }

    @Test func judgesTheStatus() throws {
        let listed = try rules(status: ["200-299", "304"])
        for (status, expected) in [
            (200, "pass"), (204, "pass"), (304, "pass"), (299, "pass"), (300, "Unacceptable status 300"),
            (500, "Unacceptable status 500"),
        ] {
            #expect(try verdict(listed, head(status)) == expected)
        }
        // The defaults: any for http, 200-299 and 304 for the others.
        #expect(try verdict(rules(types: ["*/*"]), head(404)) == "pass")
        #expect(try verdict(rules([.json]), head(304)) == "pass")
        #expect(try verdict(rules([.json]), head(404)) == "Unacceptable status 404")
        #expect(try verdict(rules([.json], status: ["404"]), head(404)) == "hold")
        #expect(try verdict(rules([.json], status: ["404"]), head(200)) == "Unacceptable status 200")
    }

    /// A type is wrong only if there is a body.
    @Test func judgesTheContentType() throws {
        let json = try rules([.json])
        #expect(try verdict(json, head()) == "hold")
        #expect(try verdict(json, head(200, "Application/JSON ; charset=utf-8")) == "hold")
        #expect(try verdict(json, head(200, "text/html")) == "Unacceptable content type text/html")
        #expect(try verdict(json, head(200, "text/html", length: 0)) == "pass")
        #expect(try verdict(json, head(200, nil, length: 0)) == "pass")
        #expect(try verdict(json, head(200, nil)) == "Missing content type")
        #expect(
            try verdict(json, head(200, "text/html", length: nil))
                == "unless empty: Unacceptable content type text/html")
        #expect(try verdict(json, head(200, "text/html", isHEAD: true)) == "pass")
        #expect(try verdict(json, head(204, "text/html", length: nil)) == "pass")
        #expect(
            try verdict(json, head(200, "application/json, text/html"))
                == "Unacceptable content type application/json, text/html")
        #expect(try verdict(rules(types: ["image/*"]), head(200, "image/anything")) == "pass")
        #expect(
            try verdict(rules(types: ["image/*"]), head(200, "imagex/png")) == "Unacceptable content type imagex/png")
        #expect(
            try verdict(rules([.json], types: ["application/vnd.api+json"]), head(200, "application/vnd.api+json"))
                == "hold")
        #expect(
            try verdict(rules([.json], types: ["application/vnd.api+json"]), head())
                == "Unacceptable content type application/json")
    }

    @Test func nestsTheTypeUnderTheStatus() throws {
        guard
            case .refuse(let error) = try judge(rules([.json])).verdict(
                on: head(500, "text/html"), inspectedBody: 1 << 20)
        else {
            Issue.record("not refused")
            return
        }
        #expect(error.code == .badServerResponse && error.code.rawValue == -1011)
        #expect(error.expected == "200-299, 304")
        #expect(error.received == "500")
        #expect(error.underlying.map(\.code.rawValue) == [-1016])
        #expect(error.underlying.first?.expected == "application/json, text/json, text/javascript")
        #expect(error.underlying.first?.received == "text/html")
        #expect(error.description(host: "api.test") == "Unacceptable status 500 from api.test")
        guard
            case .refuse(let empty) = try judge(rules([.json])).verdict(
                on: head(500, "text/html", length: 0), inspectedBody: 1 << 20)
        else {
            Issue.record("not refused")
            return
        }
        #expect(empty.underlying == [])
    }

    @Test func leavesAloneWhatHasNoBodyOfItsOwn() throws {
        let json = try rules([.json], removeNullValues: true)
        for status in [100, 102, 103] { #expect(try verdict(json, head(status, "text/html", length: nil)) == "pass") }
        #expect(try verdict(json, head(101, nil, length: nil)) == "Unacceptable status 101")
        #expect(try verdict(rules([.json], status: ["101"]), head(101, nil, length: nil)) == "pass")
        #expect(try verdict(json, head(206)) == "pass")
        #expect(try verdict(json, head(206, "text/html")) == "Unacceptable content type text/html")
        #expect(try verdict(json, head(200, isHEAD: true)) == "pass")
        #expect(try verdict(json, head(205)) == "pass")
    }

    @Test func boundsTheLength() throws {
        let short = try rules(maxBody: 10)
        #expect(try verdict(short, head(length: 10)) == "pass up to 10")
        #expect(try verdict(short, head(length: nil)) == "pass up to 10")
        #expect(try verdict(short, head(length: 11)) == "Body is longer than max_body, 10 bytes")
        #expect(try verdict(short, head(length: 11, isHEAD: true)) == "pass")
        #expect(try verdict(rules([.json], maxBody: 10), head(length: nil)) == "hold up to 10")
        #expect(
            error(try body(rules([.json], maxBody: 10), Array("[1,2,3,4,5,6]".utf8), head(length: nil)))?.reason
                == .tooLong(limit: 10))
        #expect(
            error(try body(rules([.json], maxBody: 10), Array("[1,2,3,4,5,6]".utf8), head(length: nil)))?.code.rawValue
                == -1103)
    }

    @Test func readsTheBodyOnlyIfARuleNeedsIt() throws {
        #expect(try verdict(rules([.http], types: ["application/json"]), head()) == "pass")
        #expect(try verdict(rules([.json, .http]), head()) == "pass")
        #expect(try verdict(rules([.json, .http], removeNullValues: true), head()) == "hold")
        for serializer in [ResponseRules.Serializer.xml, .propertyList, .image] {
            #expect(try verdict(rules([serializer], types: ["a/b"]), head(200, "a/b")) == "hold")
        }
    }

    @Test func judgesTheBody() throws {
        #expect(isPass(try body(rules([.json]), Array("{\"a\": null}".utf8))))
        let error = try #require(error(try body(rules([.json]), Array("{\"a\":\n <html>}".utf8))))
        #expect(
            error.description(host: "api.test")
                == "Body of api.test is not JSON: line 2, column 2: expected a value, found \"<\"")
        #expect(error.code.rawValue == -1016)
        #expect(error.place == TextPlace(line: 2, column: 2))
        #expect(isPass(try body(rules([.json]), [], head(length: nil))))
        #expect(isPass(try body(rules([.json]), [0x20])))
    }

    @Test func rewrites() throws {
        let json = try rules([.json], removeNullValues: true)
        guard case .rewrite(let kept) = try body(json, Array("{\"a\": null, \"b\": 1}".utf8)) else {
            Issue.record("not rewritten")
            return
        }
        #expect(kept == Array("{\"b\": 1}".utf8))
        #expect(isPass(try body(json, Array("{\"b\": 1}".utf8))))
        #expect(error(try body(json, Array("{\"b\": nul}".utf8))) != nil)
    }

    /// The first that accepts decides, beginning with the type.
    @Test func asksSeveralInOrder() throws {
        let both = try rules([.json, .xml])
        #expect(isPass(try body(both, Array("[]".utf8))))
        #expect(isPass(try body(both, Array("<a/>".utf8), head(200, "text/xml", length: 4))))
        #expect(error(try body(both, Array("<a/>".utf8)))?.expected == "JSON")
        #expect(error(try body(both, Array("[]".utf8), head(200, "text/xml")))?.expected == "XML")
        #expect(try verdict(both, head(200, "text/html")) == "Unacceptable content type text/html")
        let any = try rules([.json, .xml], types: ["*/*"])
        #expect(isPass(try body(any, Array("<a/>".utf8), head(200, "a/b", length: 4))))
        #expect(isPass(try body(any, Array("[]".utf8), head(200, "a/b"))))
        let error = try #require(error(try body(any, Array("no".utf8), head(200, "a/b"))))
        #expect(error.expected == "JSON or XML")
        #expect(error.underlying.count == 2)
    }

    @Test func undoesContentCodings() throws {
        // gzip of [null, 1] with mtime 0
        let gzip: [UInt8] = [
            0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x8B, 0xCE, 0x2B, 0xCD, 0xC9, 0xD1, 0x51, 0x30,
            0x8C, 0x05, 0x00, 0xF0, 0xAF, 0xE5, 0x4F, 0x09, 0x00, 0x00, 0x00,
        ]
        let json = try rules([.json])
        #expect(isPass(try body(json, gzip, head(length: gzip.count, coding: "gzip"))))
        guard
            case .rewrite(let kept) = try body(
                rules([.json], removeNullValues: true), gzip, head(length: gzip.count, coding: "gzip"))
        else {
            Issue.record("not rewritten")
            return
        }
        #expect(kept == Array("[1]".utf8))
        #expect(
            error(try body(json, gzip.dropLast(), head(length: 1, coding: "gzip")))?.description
                == "Body can't be decoded: gzip is cut off: the body ends before it does")
        #expect(
            try verdict(json, head(coding: "rot13")) == "Body can't be decoded: the content coding rot13 is not known")
        #expect(try verdict(rules(status: ["200"]), head(coding: "rot13")) == "pass")
    }

    @Test func saysWhatIsTooLongToJudge() throws {
        let long = Array(("[" + String(repeating: " ", count: 100) + "x").utf8)
        #expect(error(try body(rules([.json]), long, inspectedBody: 50))?.reason == .tooLongToJudge(limit: 50))
        #expect(isPass(try body(rules([.json], oversize: .pass), long, inspectedBody: 50)))
    }

    /// A type of 8 KiB: read, judged and shown in part.
    @Test func boundsContentTypes() throws {
        let long = "text/" + String(repeating: "x", count: 8 << 10)
        #expect(ContentType(long).essence == nil)
        #expect(ContentType(long).description.count == 101)
        #expect(
            ContentType("application/json;" + String(repeating: "x=\"\\\",\";", count: 1 << 10)).essence
                == "application/json")
        #expect(ContentType("a/b; x=\"y, z\"").essence == "a/b")
        for malformed in [
            "", "/", "json", "a/", "/b", "a/b/c", "a b/c", "a/b c", "a/b, c/d", "a/b;x=1, c/d", "é/b", "a\u{0}/b",
        ] {
            #expect(ContentType(malformed).essence == nil, "\(malformed)")
        }
        #expect(ContentType("a\u{1B}[31m/b").description == "a\\u{1B}[31m/b")
    }
}
