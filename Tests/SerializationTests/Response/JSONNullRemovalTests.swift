import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

@Suite struct JSONNullRemovalTests {
    @Test(arguments: [
        ("[null]", "[]"), ("[ null ]", "[  ]"), ("[null,null]", "[]"), ("[1,null]", "[1]"), ("[null, 1]", "[1]"),
        ("[1, null, 2]", "[1, 2]"), ("{\"a\":null}", "{}"), ("{\"a\": 1,\n \"b\": null\n}", "{\"a\": 1\n}"),
        ("{\"b\": null, \"a\": 1}", "{\"a\": 1}"), ("[[null],{\"a\":null},null]", "[[],{}]"),
        ("{\"a\":1,\"a\":null,\"a\":2.50}", "{\"a\":1,\"a\":2.50}"), ("[null,[null,3],null,null]", "[[3]]"),
        ("{\"z\":{\"y\":[null]},\"n\":null}", "{\"z\":{\"y\":[]}}"), ("[null,null,1,null,null]", "[1]"),
        ("\u{FEFF}[null]", "\u{FEFF}[]"),
    ])
    func cutsNullsWithOneCommaEach(_ text: String, _ expected: String) throws {
        let kept = try JSONResponseSerializer().removingNullValues(from: Array(text.utf8))
        #expect(kept.map { String(decoding: $0, as: UTF8.self) } == expected)
    }

    @Test(arguments: ["null", "{}", "[1]", "[\"null\"]", "{\"null\": 1}", "", " "]) func leavesTheRestAlone(
        _ text: String
    ) throws {
        #expect(try JSONResponseSerializer().removingNullValues(from: Array(text.utf8)) == nil)
    }

    /// Random documents, with their white space, repeated names and long numbers: Python reads the result, which must
    /// equal what Python would keep of the original.
    @Test func keepsWhatPythonKeeps() throws {
        var random = SeededGenerator(seed: 4)
        var lines: [String] = []
        for _ in 0..<2_000 {
            let text = "[" + (0..<3).map { _ in document(4, &random) }.joined(separator: ",") + "]"
            let kept =
                try JSONResponseSerializer().removingNullValues(from: Array(text.utf8)).map {
                    String(decoding: $0, as: UTF8.self)
                } ?? text
            lines += [text, kept]
        }
        // One line each: the documents have no line feeds.
        let program = """
            import json, sys
            class Members(list): pass
            def load(text):
                return json.loads(text, object_pairs_hook=Members, parse_int=str, parse_float=str)
            def strip(value):
                if isinstance(value, Members): return Members((k, strip(v)) for k, v in value if v is not None)
                if isinstance(value, list): return [strip(v) for v in value if v is not None]
                return value
            lines = sys.stdin.buffer.read().decode().split("\\n")[:-1]
            pairs = list(zip(lines[::2], lines[1::2]))
            wrong = [(a, b) for a, b in pairs if repr(strip(load(a))) != repr(load(b))]
            print(json.dumps({"pairs": len(pairs), "changed": sum(a != b for a, b in pairs), "wrong": wrong[:1]}))
            """
        let said = try PeerProgram.python.run(program, input: Array(lines.map { $0 + "\n" }.joined().utf8))
        let counts = try #require(said as? [String: Any])
        #expect(counts["pairs"] as? Int == 2_000)
        #expect((counts["wrong"] as? [Any])?.isEmpty == true, "\(counts)")
        #expect(try #require(counts["changed"] as? Int) > 1_000)
    }

    private func document(_ depth: Int, _ random: inout SeededGenerator) -> String {
        func space() -> String { ["", "", " ", "  ", "\t"].randomElement(using: &random)! }
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &random) {
        case 0, 1: return "null"
        case 2: return ["1", "-0", "1.50", "12345678901234567890.10", "1E5"].randomElement(using: &random)!
        case 3: return ["true", "false"].randomElement(using: &random)!
        case 4, 5: return ["\"\"", "\"null\"", "\"a,\\\"]}\"", "\"é\\u00e9\""].randomElement(using: &random)!
        case 6:
            let elements = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                space() + document(depth - 1, &random) + space()
            }
            return "[" + space() + elements.joined(separator: ",") + "]"
        default:
            let members = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                let name = ["\"a\"", "\"b\"", "\"null\"", "\",\""].randomElement(using: &random)!
                return space() + name + space() + ":" + space() + document(depth - 1, &random) + space()
            }
            return "{" + space() + members.joined(separator: ",") + "}"
        }
    }
}
