import Testing

@testable import PinproxyHTTPWire

@Suite struct PathPatternTests {
    @Test(arguments: [
        ("/", ["/"], ["/a", "//"]),
        ("/v1/users", ["/v1/users"], ["/v1/users/", "/v1", "/V1/users", "/v1/users/7"]),
        ("/v1/*", ["/v1/users", "/v1/", "/v1/*"], ["/v1", "/v1/users/7", "/v1/users/", "/v2/users"]),
        ("/v1/**", ["/v1", "/v1/", "/v1/users", "/v1/users/7/", "/v1//x"], ["/v10", "/v", "/x/v1/a"]),
        (
            "/**/upload", ["/upload", "/a/upload", "/a/b/upload", "/upload/upload"],
            ["/uploads", "/a/upload/", "/xupload"]
        ),
        ("/**", ["/", "/a", "/a/b/"], ["*"]),
        ("/**/", ["/", "/a/", "/a/b/"], ["/a"]),
        ("/a/**/b/**/c", ["/a/b/c", "/a/x/y/b/c", "/a/b/x/c", "/a/b/c/b/c"], ["/a/c", "/a/bc", "/a/b", "/b/c"]),
        ("/a/**/**/b", ["/a/b", "/a/x/b"], ["/a", "/a/xb"]),
        (
            "/files/**.gz", ["/files/a.gz", "/files/a/b.gz", "/files/.gz"],
            ["/files/a.gz/b", "/files/a.GZ", "/filesa.gz"]
        ),
        ("/v*/users", ["/v1/users", "/v/users", "/v10/users"], ["/v1/x/users", "/users"]),
        ("/*/*/c", ["/a/b/c", "///c"], ["/a/c", "/a/b/b/c"]),
        ("/a*b*c", ["/abc", "/a1b2c", "/abbcc"], ["/ab/c", "/acb"]),
        ("/ü b/%/{x}[y]", ["/ü b/%/{x}[y]"], ["/u b/%/x"]),
    ])
    func matches(_ text: String, _ matching: [String], _ others: [String]) throws {
        let pattern = try PathPattern(text)
        for path in matching { #expect(pattern.matches(Array(path.utf8)), "\(text) \(path)") }
        for path in others { #expect(!pattern.matches(Array(path.utf8)), "\(text) \(path)") }
    }

    @Test(
        arguments: [
            ("", .empty), ("v1", .notAbsolute), ("*", .notAbsolute), ("**/upload", .notAbsolute),
            ("https://a.test/", .notAbsolute), ("/a?b=c", .query), ("/a#b", .query), ("/a\\b", .backslash),
            ("/a;b", .parameters), ("/a%20b", .encoded(0x20)), ("/%7Eann", .encoded(0x7E)), ("/a\u{0}b", .control),
            ("/a\nb", .control), ("/a***", .stars), ("/a//b", .emptySegment), ("//", .emptySegment),
            ("/a/./b", .dotSegment), ("/a/..", .dotSegment), ("/" + String(repeating: "a", count: 255), .tooLong),
        ] as [(String, PathPatternError)])
    func refusesWhatCouldNotMatch(_ text: String, _ expected: PathPatternError) {
        #expect(throws: expected) { try PathPattern(text) }
    }

    @Test func takesTheLongest() throws {
        let text = "/" + String(repeating: "*a", count: 127)
        #expect(try PathPattern(text).matches(Array(("/" + String(repeating: "xa", count: 127)).utf8)))
    }

    /// A path that would keep a backtracking matcher busy for hours is matched in one pass.
    @Test func noPathIsSlow() throws {
        let path = Array(("/" + String(repeating: "a", count: 4_000)).utf8)
        #expect(try !PathPattern("/**a*a*a**a*a**b").matches(path))
        #expect(try PathPattern("/**a*a*a**a*a**").matches(path))
    }

    // MARK: Against a naive model

    private static let alphabet = Array("/a*b".utf8)

    /// The literal meaning of a pattern, in one line each; exponential, so only for short ones.
    private func matches(_ pattern: ArraySlice<UInt8>, _ path: ArraySlice<UInt8>) -> Bool {
        guard let first = pattern.first else { return path.isEmpty }
        let slash = UInt8(ascii: "/")
        let rest = pattern.dropFirst()
        if pattern.starts(with: "/**".utf8), pattern.count == 3 || pattern.dropFirst(3).first == slash {
            if matches(pattern.dropFirst(3), path) { return true }
            guard path.first == slash else { return false }
            return (path.startIndex..<path.endIndex).contains { matches(pattern.dropFirst(3), path[($0 + 1)...]) }
        }
        if pattern.starts(with: "**".utf8) {
            return (path.startIndex...path.endIndex).contains { matches(pattern.dropFirst(2), path[$0...]) }
        }
        if first == UInt8(ascii: "*") {
            let end = path.firstIndex(of: slash) ?? path.endIndex
            return (path.startIndex...end).contains { matches(rest, path[$0...]) }
        }
        return path.first == first && matches(rest, path.dropFirst())
    }

    private func text(_ random: inout Seeded, of letters: [String], upTo length: Int) -> String {
        "/"
            + (0..<Int.random(in: 0...length, using: &random)).map { _ in letters.randomElement(using: &random) ?? "" }
            .joined()
    }

    @Test func agreesWithTheNaiveModel() throws {
        var random = Seeded(11)
        var matched = 0
        for _ in 0..<3_000 {
            let written = text(&random, of: ["a", "b", "/", "*", "**", "/**/", "/*"], upTo: 6)
            guard let pattern = try? PathPattern(written) else { continue }
            for _ in 0..<12 {
                let path = text(&random, of: ["a", "b", "/", "ab"], upTo: 7)
                let expected = matches(Array(written.utf8)[...], Array(path.utf8)[...])
                matched += expected ? 1 : 0
                #expect(pattern.matches(Array(path.utf8)) == expected, "\(written) \(path)")
            }
        }
        // This is meaningful only if both answers are common.
        #expect(matched > 2_000)
    }

    @Test(arguments: [
        ("/**", "/a", true), ("/**", "/**", true), ("/a/**", "/a", true), ("/a/**", "/a/", true),
        ("/a/*", "/a/b", true),
        ("/a/**", "/a/*/c", true), ("/a*", "/ab*", true), ("/**/c", "/a/*/c", true), ("/**.gz", "/x/*.gz", true),
        ("/*", "/*", true),
        ("/a", "/b", false), ("/a/*", "/a", false), ("/a/*", "/a/**", false), ("/*", "/**", false),
        ("/ab*", "/a*", false),
        ("/**/a", "/**", false), ("/*/b", "/a/*", false), ("/**a**", "/**b**", false),
    ])
    func covers(_ wide: String, _ narrow: String, _ expected: Bool) throws {
        #expect(try PathPattern(wide).covers(PathPattern(narrow)) == expected)
    }

    /// A pattern covers another exactly if no path distinguishes them: tried with all short paths.
    @Test func coversWhatItMatchesMoreThan() throws {
        var random = Seeded(12)
        var paths: [[UInt8]] = [[UInt8(ascii: "/")]]
        for start in [0, 1, 4, 13, 40, 121] {
            for path in paths[start...] { for byte in "/ab".utf8 { paths.append(path + [byte]) } }
        }
        var covered = 0
        for _ in 0..<150 {
            let (one, other) = (
                text(&random, of: ["a", "/", "*", "**", "/*"], upTo: 3),
                text(&random, of: ["a", "/", "*", "/**"], upTo: 3)
            )
            guard let wide = try? PathPattern(one), let narrow = try? PathPattern(other) else { continue }
            let difference = paths.first { narrow.matches($0) && !wide.matches($0) }
            if wide.covers(narrow) {
                covered += 1
                #expect(difference == nil, "\(one) \(other) \(String(decoding: difference ?? [], as: UTF8.self))")
            } else {
                #expect(difference != nil, "\(one) \(other)")
            }
        }
        #expect(covered > 10)
    }
}
