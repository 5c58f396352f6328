import Foundation
import PinproxyTestBodies
import Testing

@testable import PinproxySerialization

/// The query, byte for byte as AFNetworking writes it.
@Suite struct QueryEncoderTests {
    private func encoded(_ parameters: ParameterValue) -> String {
        guard case .dictionary(let pairs) = parameters else { return "not a dictionary" }
        return String(decoding: QueryEncoder.encode(pairs), as: UTF8.self)
    }

    @Test func leavesAloneWhatTheOriginalLeavesAlone() {
        #expect(
            QueryEncoder.escape(" :#[]@!$&'()*+,;=/?") == "%20%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?")
        let untouched = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/?"
        #expect(QueryEncoder.escape(untouched) == untouched)
        for byte in UInt8(0)..<0x80 where !untouched.utf8.contains(byte) {
            #expect(QueryEncoder.escape(String(UnicodeScalar(byte))) == String(format: "%%%02X", byte))
        }
        #expect(QueryEncoder.escape("Bücher ☃") == "B%C3%BCcher%20%E2%98%83")
    }

    @Test(
        arguments: [
            (["a": "x", "b": 1], "a=x&b=1"),
            (["b": 1, "a": "x"], "b=1&a=x"),
            (["k": ["sub": "x", "other": ["deep": 2]]], "k%5Bsub%5D=x&k%5Bother%5D%5Bdeep%5D=2"),
            (["k": ["b", "a", 1]], "k%5B%5D=b&k%5B%5D=a&k%5B%5D=1"),
            (["k": [["a", "b"], "c"]], "k%5B%5D%5B%5D=a&k%5B%5D%5B%5D=b&k%5B%5D=c"),
            (["k": [["n": 1], ["n": 2]]], "k%5B%5D%5Bn%5D=1&k%5B%5D%5Bn%5D=2"),
            (["k": .set(["c", "a", "b"])], "k=a&k=b&k=c"),
            (["k": ["s": .set(["é", "z", "a"])]], "k%5Bs%5D=a&k%5Bs%5D=z&k%5Bs%5D=%C3%A9"),
            (["k": nil], "k"), (["a": nil, "k": [nil, "x"]], "a&k%5B%5D&k%5B%5D=x"),
            (["k": ""], "k="), (["": "x"], "=x"), (["k": true, "l": false], "k=true&l=false"),
            (["k": .number("1e400")], "k=1e400"),
            (["a b[c]&d=": "x"], "a%20b%5Bc%5D%26d%3D=x"),
            ([:], ""), (["a": [:], "b": [], "c": .set([])], ""), (["a": [:], "b": 1], "b=1"),
            (
                ["user": ["name": "x", "tags": ["a", "b"]]],
                "user%5Bname%5D=x&user%5Btags%5D%5B%5D=a&user%5Btags%5D%5B%5D=b"
            ),
        ] as [(ParameterValue, String)])
    func namesValuesAsTheOriginal(_ parameters: ParameterValue, _ query: String) {
        #expect(encoded(parameters) == query)
    }

    @Test func aDictionaryWithoutAnOrderIsSorted() {
        #expect(encoded(ParameterValue(sorting: ["b": 1, "a": 2, "C": 3, "é": 4])) == "C=3&a=2&b=1&%C3%A9=4")
    }

    @Test(arguments: [
        ("/p", "/p?a=b"), ("/p?", "/p?a=b"), ("/p?x=1", "/p?x=1&a=b"), ("/p?x&", "/p?x&a=b"), ("/p??", "/p??a=b"),
        ("/p#f", "/p?a=b#f"), ("/p?x=1#f?g", "/p?x=1&a=b#f?g"), ("/p#f?g", "/p?a=b#f?g"), ("/p?#", "/p?a=b#"),
        ("http://h.test/p?x=1", "http://h.test/p?x=1&a=b"), ("/", "/?a=b"), ("*", "*"),
    ])
    func joinsTheTarget(_ target: String, _ joined: String) {
        #expect(String(decoding: QueryEncoder.join(Array("a=b".utf8), to: Array(target.utf8)), as: UTF8.self) == joined)
        #expect(QueryEncoder.join([], to: Array(target.utf8)) == Array(target.utf8))
    }

    /// The original once cut a text into batches, and split a family emoji.
    @Test func emojiMayBeCutAtAnyScalar() {
        let text = String(repeating: "👴🏿👷🏻👮🏽👨‍👩‍👧‍👦🇦🇹e\u{301}", count: 12)
        for count in 0...text.unicodeScalars.count {
            let cut = String(String.UnicodeScalarView(text.unicodeScalars.prefix(count)))
            let escaped = QueryEncoder.escape(cut)
            #expect(escaped.utf8.allSatisfy { $0 < 0x80 })
            #expect(escaped.removingPercentEncoding.map { Array($0.utf8) } == Array(cut.utf8))
        }
    }

    /// Python's urllib and Node's URLSearchParams read back what was encoded, name by name.
    @Test(arguments: [
        (
            PeerProgram.python,
            """
            import json, sys, urllib.parse
            lines = sys.stdin.buffer.read().decode("ascii").split("\\n")
            print(json.dumps([urllib.parse.parse_qsl(l, keep_blank_values=True, errors="strict") for l in lines]))
            """
        ),
        (
            .node,
            """
            const lines = require("fs").readFileSync(0, "ascii").split("\\n");
            const escaped = c => "\\\\u" + c.charCodeAt(0).toString(16).padStart(4, "0");
            process.stdout.write(JSON.stringify(lines.map(l => [...new URLSearchParams("?" + l)])).replace(/[^ -~]/g, \
            escaped));
            """
        ),
    ])
    func othersReadBackWhatWasEncoded(_ peer: PeerProgram, _ script: String) throws {
        var random = SeededGenerator(seed: 9)
        let samples = (0..<1000).map { _ in random.pairs(depth: 3) }
        let input = samples.map(QueryEncoder.encode).joined(separator: [UInt8(ascii: "\n")])
        let read = try #require(try peer.run(script, input: Array(input)) as? [[[String]]])
        #expect(read.count == samples.count)
        for (pairs, read) in zip(samples, read) {
            var leaves: [[[UInt8]]] = []
            ParameterLeaves { $1 += $0.utf8 }.forEach(of: pairs) { leaves.append([$0, Array(($1 ?? "").utf8)]) }
            #expect(read.map { $0.map { Array($0.utf8) } } == leaves)
        }
    }
}
