import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// Parameters in requests: where they are put, how they are encoded, and the content type.
@Suite struct RequestSerializerTests {
    private static let parameters: [ParameterValue.Pair] = [
        .init(key: "user", value: ["name": "x", "tags": ["a", "b"]]), .init(key: "n", value: .number("1.10")),
    ]
    private static let query = "user%5Bname%5D=x&user%5Btags%5D%5B%5D=a&user%5Btags%5D%5B%5D=b&n=1.10"
    private static let serializers: [any RequestSerializer] = [
        HTTPRequestSerializer(), JSONRequestSerializer(), PropertyListRequestSerializer(), MultipartRequestSerializer(),
    ]

    private func outline(_ method: String, hasContentType: Bool = false, hasBody: Bool = false) -> RequestOutline {
        RequestOutline(method: method, target: Array("/p".utf8), hasContentType: hasContentType, hasBody: hasBody)
    }

    @Test(arguments: ["GET", "HEAD", "DELETE"]) func someMethodsCarryParametersInTheQuery(_ method: String) throws {
        for serializer in Self.serializers {
            // Whether or not there is a body.
            for hasBody in [false, true] {
                let made = try serializer.serialize(Self.parameters, into: outline(method, hasBody: hasBody))
                #expect(made == .target(Array("/p?\(Self.query)".utf8)))
            }
        }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "OPTIONS", "get", "PROPFIND"])
    func othersCarryThemInTheBody(_ method: String) throws {
        let form = try HTTPRequestSerializer().serialize(Self.parameters, into: outline(method))
        #expect(form == .body(Array(Self.query.utf8), contentType: "application/x-www-form-urlencoded"))
        let json = try JSONRequestSerializer().serialize(Self.parameters, into: outline(method))
        #expect(
            json
                == .body(
                    Array(#"{"user":{"name":"x","tags":["a","b"]},"n":1.10}"#.utf8), contentType: "application/json"))
        guard
            case .body(let list, "application/x-plist") =
                try PropertyListRequestSerializer().serialize(Self.parameters, into: outline(method))
        else {
            Issue.record("no property list")
            return
        }
        let value = try PropertyListSerialization.propertyList(from: Data(list), format: nil) as? NSDictionary
        #expect(value == ["user": ["name": "x", "tags": ["a", "b"]] as [String: Any], "n": 1.1] as NSDictionary)
    }

    @Test func theRequestsOwnContentTypeStays() throws {
        for serializer in Self.serializers.dropLast() {
            let made = try serializer.serialize(Self.parameters, into: outline("POST", hasContentType: true))
            guard case .body(_, contentType: nil) = made else {
                Issue.record("\(made)")
                return
            }
        }
    }

    @Test func aRequestWithABodyKeepsIt() throws {
        for serializer in Self.serializers {
            #expect(
                try serializer.serialize(Self.parameters, into: outline("POST", hasBody: true)) == .unchanged(.hasBody))
        }
    }

    @Test func withoutParametersNothingHappens() throws {
        for serializer in Self.serializers {
            let isForm = serializer is HTTPRequestSerializer
            for method in isForm ? ["GET"] : ["GET", "POST"] {
                #expect(try serializer.serialize([], into: outline(method)) == .unchanged(.noParameters))
            }
            let empty: [ParameterValue.Pair] = [.init(key: "a", value: [:])]
            #expect(try serializer.serialize(empty, into: outline("GET")) == .unchanged(.noParameters))
        }
    }

    /// The empty form of the original, which rules of the proxy don't make of a client's request.
    @Test func aFormWithoutParametersIsEmpty() throws {
        let form = HTTPRequestSerializer()
        let type = "application/x-www-form-urlencoded"
        for none: ParameterValue in [.null, [:]] {
            #expect(try form.serialize(none, into: outline("POST")) == .body([], contentType: type))
            #expect(try form.serialize(none, into: outline("GET")) == .unchanged(.noParameters))
            #expect(try form.serialize(none, into: outline("TRACE")) == .unchanged(.noParameters))
        }
        #expect(try form.serialize([:], into: outline("POST", hasBody: true)) == .unchanged(.noParameters))
        #expect(
            try form.serialize([:], into: outline("POST", hasContentType: true)) == .body([], contentType: nil))
        #expect(try RequestRules().serialize(into: outline("POST")) == .unchanged(.noParameters))
    }

    @Test func theTopIsAnArrayWhereTheFormatHasThem() throws {
        let array: ParameterValue = [1, 2.5, "x", ["a": nil]]
        let json = try JSONRequestSerializer().serialize(array, into: outline("POST"))
        #expect(json == .body(Array(#"[1,2.5,"x",{"a":null}]"#.utf8), contentType: "application/json"))
        let empty: ParameterValue = []
        #expect(
            try JSONRequestSerializer().serialize(empty, into: outline("POST"))
                == .body(Array("[]".utf8), contentType: "application/json"))
        guard case .body(let list, _) = try PropertyListRequestSerializer().serialize([1], into: outline("POST")) else {
            Issue.record("no list")
            return
        }
        #expect(String(decoding: list, as: UTF8.self).contains("<array>\n\t<integer>1</integer>"))
        for (serializer, method, format) in [
            (HTTPRequestSerializer(), "POST", "a form"), (HTTPRequestSerializer(), "GET", "a query"),
            (JSONRequestSerializer(), "GET", "a query"), (MultipartRequestSerializer(), "POST", "a form"),
        ] as [(any RequestSerializer, String, String)] {
            let error = #expect(throws: RequestSerializationError.self) {
                try serializer.serialize(array, into: outline(method))
            }
            #expect(error?.description == "The top is an array, which \(format) can't express")
        }
    }

    /// JSON has no number that isn't finite.
    @Test func floatsAreLiterals() throws {
        let parameters: ParameterValue = ["a": 0.5, "b": 1e300, "c": -1.0]
        guard case .body(let body, _) = try JSONRequestSerializer().serialize(parameters, into: outline("POST")) else {
            Issue.record("no body")
            return
        }
        #expect(String(decoding: body, as: UTF8.self) == #"{"a":0.5,"b":1e+300,"c":-1.0}"#)
        #expect(throws: RequestSerializationError.self) {
            try JSONRequestSerializer().serialize(["a": .init(floatLiteral: .nan)], into: outline("POST"))
        }
    }

    @Test func traceHasNoBody() throws {
        for serializer in Self.serializers {
            #expect(try serializer.serialize(Self.parameters, into: outline("TRACE")) == .unchanged(.method))
        }
    }

    @Test func theMethodsOfTheQueryAreChosen() throws {
        var rules = RequestRules()
        rules.parameters = [.init(key: "a", value: "b")]
        rules.queryMethods = [try MethodName("POST")]
        #expect(try rules.serialize(into: outline("POST")) == .target(Array("/p?a=b".utf8)))
        #expect(
            try rules.serialize(into: outline("GET"))
                == .body(Array("a=b".utf8), contentType: "application/x-www-form-urlencoded"))
        rules.serializer = .json
        #expect(
            try rules.serialize(into: outline("DELETE"))
                == .body(Array(#"{"a":"b"}"#.utf8), contentType: "application/json"))
        rules.serializer = .multipart
        guard case .form = try rules.serialize(into: outline("DELETE")) else {
            Issue.record("no form")
            return
        }
        #expect(try rules.serialize(into: outline("GET")) == .unchanged(.method))
    }

    // MARK: What a format can't express

    @Test(
        arguments: [
            (["a": .set(["x"])], "a is a set, which JSON can't express"),
            (["a": ["b": [["c": .set([])]]]], "a[b][][c] is a set, which JSON can't express"),
            (["a": .number("NaN")], "a is not a number, which JSON can't express"),
            (["a": .number("1,\"b\":2")], "a is not a number, which JSON can't express"),
            (["a": 1, "b": ["x": 1, "x": 2]], "b[x] is written twice, which JSON can't express"),
            (["a\n\u{202E}": .number("")], "a\\u{A}\\u{202E} is not a number, which JSON can't express"),
        ] as [(ParameterValue, String)])
    func whatJSONCannotExpressIsAnError(_ parameters: ParameterValue, _ text: String) throws {
        guard case .dictionary(let pairs) = parameters else { return }
        let error = #expect(throws: RequestSerializationError.self) {
            try JSONRequestSerializer().serialize(pairs, into: outline("POST"))
        }
        #expect(error?.description == text)
        #expect(error?.code.rawValue == -1016)
    }

    @Test(
        arguments: [
            (["a": nil], "a is null"), (["a": [1, nil]], "a[] is null"), (["a": .set(["x"])], "a is a set"),
            (["a": .number("18446744073709551616")], "a is an integer of more than 64 bits"),
            (["a": .number("1e400")], "a is a number beyond the range of a double"),
            (["a": .number("<x/>")], "a is not a number"),
            (["a": "x\u{0}"], "a is a text with a character that XML forbids"),
            (["a": "\u{1B}["], "a is a text with a character that XML forbids"),
            (["a": "\u{FFFF}"], "a is a text with a character that XML forbids"),
            (["\u{1}": 1], "\\u{1} is a text with a character that XML forbids"),
            (["x": 1, "x": 2], "x is written twice"),
        ] as [(ParameterValue, String)])
    func whatAPropertyListCannotExpressIsAnError(_ parameters: ParameterValue, _ text: String) throws {
        guard case .dictionary(let pairs) = parameters else { return }
        let error = #expect(throws: RequestSerializationError.self) {
            try PropertyListRequestSerializer().serialize(pairs, into: outline("POST"))
        }
        #expect(error?.description == text + ", which a property list can't express")
        #expect(error?.code.rawValue == -1016)
    }

    /// An accent that is composed differently makes another key.
    @Test func keysAreComparedByteByByte() throws {
        let pairs: [ParameterValue.Pair] = [.init(key: "é", value: 1), .init(key: "e\u{301}", value: 2)]
        #expect(try JSONWriter.write(.dictionary(pairs)) == Array("{\"é\":1,\"e\u{301}\":2}".utf8))
    }

    @Test func numbersKeepTheirDigits() throws {
        let numbers = ["0", "-0", "1.10", "1e400", "123456789012345678901234567890", "-1.5E-7"]
        let pairs = numbers.map { ParameterValue.Pair(key: $0, value: .number($0)) }
        let json = String(decoding: try JSONWriter.write(.dictionary(pairs)), as: UTF8.self)
        #expect(json == "{" + numbers.map { "\"\($0)\":\($0)" }.joined(separator: ",") + "}")
    }

    @Test func literalsAreParameters() {
        let value: ParameterValue = ["a": [1, -2, true, nil, "x"]]
        let list: ParameterValue = .array([.number("1"), .number("-2"), .bool(true), .null, .string("x")])
        #expect(value == .dictionary([.init(key: "a", value: list)]))
    }

    // MARK: Read by other programs

    /// Python's json reads the same values in the same order.
    @Test func pythonReadsTheJSON() throws {
        var random = SeededGenerator(seed: 1)
        let samples = (0..<500).map { _ in ParameterValue.dictionary(random.pairs(depth: 3)) }
        let lines = try samples.map { try JSONWriter.write($0) }.joined(separator: [UInt8(ascii: "\n")])
        let script = """
            import json, sys
            lines = sys.stdin.buffer.read().decode("utf-8").split("\\n")
            print(json.dumps([json.dumps(json.loads(l), ensure_ascii=False, separators=(",", ":")) for l in lines]))
            """
        let read = try #require(try PeerProgram.python.run(script, input: Array(lines)) as? [String])
        #expect(read.count == samples.count)
        for (sample, text) in zip(samples, read) {
            // U+007F is the only character that Python writes differently.
            #expect(Array(text.replacing("\\u007f", with: "\u{7F}").utf8) == (try JSONWriter.write(sample)))
        }
    }

    /// Python's plistlib and Foundation read the same values.
    @Test func othersReadThePropertyList() throws {
        var random = SeededGenerator(seed: 2)
        var samples: [(list: [UInt8], json: [UInt8])] = []
        while samples.count < 500 {
            let sample = ParameterValue.dictionary(random.pairs(depth: 3))
            if let list = try? PropertyListWriter.write(sample) { samples.append((list, try JSONWriter.write(sample))) }
        }
        let script = """
            import json, plistlib, sys
            lists = sys.stdin.buffer.read().split(b"\\0")
            print(json.dumps([plistlib.loads(l, fmt=plistlib.FMT_XML) for l in lists]))
            """
        let read = try PeerProgram.python.run(script, input: Array(samples.map(\.list).joined(separator: [0])))
        let values = try #require(read as? [NSDictionary])
        #expect(values.count == samples.count)
        for (sample, value) in zip(samples, values) {
            let expected = try JSONSerialization.jsonObject(with: Data(sample.json)) as? NSDictionary
            guard !sample.json.contains(0xEF) else { continue }
            #expect(value == expected)
            let list = try PropertyListSerialization.propertyList(from: Data(sample.list), format: nil) as? NSDictionary
            #expect(list == expected)
        }
    }
}
