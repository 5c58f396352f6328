import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

@Suite struct JSONResponseTests {
    private let serializer = JSONResponseSerializer()

    private func defect(in text: String) -> BodyDefect? { defect(in: Array(text.utf8)) }

    private func defect(in body: [UInt8]) -> BodyDefect? {
        caught { () throws(BodyDefect) in try serializer.check(body: body) }
    }

    @Test(arguments: [
        "{}", "[]", "{\"a\":1}", " [1, -0, 1.5e-7, 0.0, 12345678901234567890] ", "\"x\"", "42", "null", "true",
        "[true,false,null]", "{\"a\":1,\"a\":2}", "[\"\\ud83d\\ude00\", \"\\u00e9\\n\\/\", \"é😀\"]", "1e-400",
        "[[[[]]],{}]",
        "\t\r\n{\"a\" : [ 1 , 2 ] }\n", "\u{FEFF}{\"a\":1}", "[\"\u{7F}\"]",
    ])
    func acceptsJSON(_ text: String) {
        #expect(defect(in: text) == nil)
        #expect(foundationAccepts(Array(text.utf8)))
    }

    /// Each with the line and column of the error.
    @Test(arguments: [
        ("{\"a\": 1,\n \"b\": nope}", 2, 7, "expected a value, found \"n\""),
        ("[1, 2,\n\n  ]", 3, 3, "expected a value, found \"]\""),
        ("<html>", 1, 1, "expected a value, found \"<\""),
        ("{\"a\":1} x", 1, 9, "expected the end of the text, found \"x\""),
        ("{a: 1}", 1, 2, "expected a name in quotes, found \"a\""),
        ("{\"a\" 1}", 1, 6, "expected \":\", found \"1\""),
        ("[1 2]", 1, 4, "expected \",\" or \"]\", found \"2\""),
        ("{\"a\":1]", 1, 7, "expected \",\" or \"}\", found \"]\""),
        ("[1", 1, 3, "expected \",\" or \"]\", found the end"),
        ("[\"ü\", \"abc", 1, 7, "a string has no end"),
        ("[\"a\nb\"]", 1, 4, "a string contains a control character, \"\\u{A}\""),
        ("[NaN]", 1, 2, "expected a value, found \"N\""), ("[Infinity]", 1, 2, "expected a value"),
        ("[-]", 1, 3, "expected a digit, found \"]\""), ("[01]", 1, 2, "can't begin with 0"),
        ("[1.]", 1, 4, "expected a digit"),
        ("[.5]", 1, 2, "expected a value"), ("[+1]", 1, 2, "expected a value"),
        ("[0x1F]", 1, 3, "expected \",\" or \"]\""),
        ("[1e400]", 1, 2, "beyond the range of a double"), ("[-1E+999]", 1, 2, "beyond the range of a double"),
        ("[\"\\ud83d\"]", 1, 3, "half of a surrogate pair"), ("[\"\\ude00\"]", 1, 3, "half of a surrogate pair"),
        ("[\"\\ud83d\\u0041\"]", 1, 3, "half of a surrogate pair"), ("[\"\\x\"]", 1, 3, "unknown escape \\x"),
        ("[\"\\u12g4\"]", 1, 7, "expected a hexadecimal digit"), ("[1,]", 1, 4, "expected a value"),
        ("{\"a\":1,}", 1, 8, "expected a name in quotes"), ("  ", 1, 3, "expected a value, found the end"),
        ("// x\n1", 1, 1, "expected a value"), ("['a']", 1, 2, "expected a value"), ("[tru]", 1, 2, "expected a value"),
    ])
    func saysWhatIsWrongAndWhere(_ text: String, _ line: Int, _ column: Int, _ words: String) throws {
        let found = try #require(defect(in: text))
        #expect(found.place == TextPlace(line: line, column: column))
        #expect(found.explanation.contains(words), "\(found)")
        #expect(!foundationAccepts(Array(text.utf8)) || Self.isTrailingComma(found))
    }

    private static func isTrailingComma(_ defect: BodyDefect) -> Bool {
        ["expected a value, found \"]\"", "expected a name in quotes, found \"}\""].contains(defect.explanation)
    }

    @Test func acceptsNothingAndASingleSpaceAsNoValue() throws {
        for body in ["", " "] { #expect(try serializer.value(ofBody: Array(body.utf8)) == nil) }
        #expect(defect(in: "  ") != nil)
    }

    @Test func makesValues() throws {
        let value = try serializer.value(ofBody: Array("{\"a\": [1, null, {\"b\": null}]}".utf8))
        #expect(value == ["a": [1, nil, ["b": nil]]])
        let less = try JSONResponseSerializer(removesNullValues: true).value(
            ofBody: Array("{\"a\": [1, null, {\"b\": null}]}".utf8))
        #expect(less == ["a": [1, [:]]])
        #expect(try serializer.value(ofBody: Array("{\"b\": 1.10, \"a\": 1, \"b\": 2}".utf8)) == ["a": 1, "b": 2])
    }

    /// As in JSONSerialization: with or without a byte order mark, in either order. Odd lengths and half pairs are
    /// refused.
    @Test(arguments: [String.Encoding.utf16BigEndian, .utf16LittleEndian, .utf32BigEndian, .utf32LittleEndian])
    func readsOtherEncodings(_ encoding: String.Encoding) throws {
        let text = "{\"name\": \"é😀\", \"n\": null}"
        for mark in ["", "\u{FEFF}"] {
            let body = Array(try #require((mark + text).data(using: encoding)))
            #expect(defect(in: body) == nil)
            #expect(foundationAccepts(body))
            let kept = try serializer.removingNullValues(from: body)
            #expect(kept == Array(try #require((mark + "{\"name\": \"é😀\"}").data(using: encoding))))
            #expect(defect(in: body.dropLast()) != nil)
            let wrong = Array(try #require((mark + "{\"a\":\n x}").data(using: encoding)))
            #expect(defect(in: wrong)?.place == TextPlace(line: 2, column: 2))
        }
    }

    @Test func refusesHalvesOfPairsInUTF16() {
        let body: [UInt8] = [0x5B, 0, 0x22, 0, 0x3D, 0xD8, 0x22, 0]
        #expect(defect(in: body)?.explanation.contains("UTF-16") == true)
    }

    @Test(
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
            [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22],
            [0x22, 0xE2, 0x82, 0x22], [0x22, 0x80, 0x22],
        ] as [[UInt8]])
    func refusesWhatIsNotUTF8(_ body: [UInt8]) throws {
        let found = try #require(defect(in: body))
        #expect(found.place == TextPlace(line: 1, column: 2))
        #expect(found.explanation.hasPrefix("not UTF-8"))
    }

    @Test func boundsNesting() {
        func nested(_ depth: Int) -> [UInt8] {
            Array(repeating: UInt8(ascii: "["), count: depth) + Array(repeating: UInt8(ascii: "]"), count: depth)
        }
        #expect(defect(in: nested(512)) == nil)
        #expect(foundationAccepts(nested(512)))
        #expect(defect(in: nested(513))?.explanation == "nested more than 512 deep")
        #expect(!foundationAccepts(nested(513)))
        #expect(defect(in: nested(100_000))?.place == TextPlace(line: 1, column: 513))
        #expect(defect(in: String(repeating: "{\"a\":", count: 100_000))?.explanation == "nested more than 512 deep")
        #expect(defect(in: "[[[],[],{}],[[]]]") == nil)
    }

    /// 10,000 damaged texts get the same verdict as from JSONSerialization. There is one exception: on Linux it accepts
    /// a comma before the end of an array or object, which isn't JSON.
    @Test func judgesAsFoundationDoes() {
        let seeds = [
            """
            {\"name\": \"pinproxy\", \"n\": [1, -2.5e3, null, true, false], \"o\": {\"a\": {}, \"b\": []}, \"u\": \
            \"\\u00e9\\ud83d\\ude00é😀\"}
            """,
            "[\"a\\n\\\\\\\"\", 0, -0.1, 1E+2, [[]], {\"x\": null}]", "\"\\ud83d\\ude00\"",
            "[1e308, 1e-9, 18446744073709551616]",
        ].map { Array($0.utf8) }
        var random = SeededGenerator(seed: 9)
        var accepted = 0
        for round in 0..<10_000 {
            let body = seeds[round % seeds.count].mutated(by: &random)
            guard !body.isEmpty, body != [0x20] else { continue }
            let found = defect(in: body)
            if let found, Self.isTrailingComma(found) { continue }
            #expect(
                (found == nil) == foundationAccepts(body),
                "\(String(decoding: body, as: UTF8.self)) \(String(describing: found))")
            if found == nil { accepted += 1 }
        }
        #expect(accepted > 300)
    }

    /// A truncated text is never complete.
    @Test func refusesEveryPrefix() {
        let text = Array("{\"name\": [\"é\\u00e9\", -1.5e3, null, true], \"o\": {\"a\": {}}}".utf8)
        for length in 2..<text.count { #expect(defect(in: Array(text[..<length])) != nil, "\(length)") }
        #expect(defect(in: text) == nil)
    }

    private func foundationAccepts(_ body: [UInt8]) -> Bool {
        (try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)) != nil
    }
}
