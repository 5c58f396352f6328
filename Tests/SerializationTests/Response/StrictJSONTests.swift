import Testing

@testable import PinproxySerialization

@Suite struct StrictJSONTests {
    @Test(arguments: [
        ("", "line 1, column 1: expected a value, found the end"),
        (#"{"a": 1, "a": 2}"#, "line 1, column 10: the key \"a\" is written twice"),
        (#"{"b": {"a": 1, "a": 2}}"#, "line 1, column 16: the key \"a\" is written twice"),
        (#"{"a": 1, "\u0061": 2}"#, "line 1, column 10: the key \"a\" is written twice"),
        ("{} {}", "line 1, column 4: expected the end of the text, found \"{\""),
        ("\u{FEFF}{}", "line 1, column 1: expected a value, found \"\\u{FEFF}\""),
        ("{\0", "line 1, column 2: expected a name in quotes, found \"\\u{0}\""),
    ]) func whatIsAmbiguousIsRefused(text: String, reason: String) {
        #expect(throws: BodyDefect.self) { try StrictJSON.read(Array(text.utf8)) }
        do throws(BodyDefect) { _ = try StrictJSON.read(Array(text.utf8)) } catch { #expect("\(error)" == reason) }
    }

    @Test func whatIsWrittenReadsTheSame() throws {
        let value: ParameterValue = ["b": [1, "é\n", true, nil], "a": ["c": "\u{0}"]]
        let text = try #require(StrictJSON.write(value))
        #expect(try StrictJSON.read(text) == value)
        #expect(StrictJSON.write(.dictionary([.init(key: "a", value: 1), .init(key: "a", value: 2)])) == nil)
        #expect(StrictJSON.write(.set([])) == nil)
    }
}
