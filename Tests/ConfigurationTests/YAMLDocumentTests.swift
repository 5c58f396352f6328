import Testing

@testable import PinproxyConfiguration

/// How text becomes YAML values, before their meaning is checked.
@Suite struct YAMLDocumentTests {
    private func compose(_ text: String) -> (value: YAMLValue?, problems: [String]) {
        compose(Array(text.utf8))
    }

    private func compose(_ bytes: [UInt8]) -> (value: YAMLValue?, problems: [String]) {
        let findings = Findings()
        let value = YAMLDocument.compose(bytes, file: "f", findings: findings)
        return (value, findings.sorted.map(\.description))
    }

    /// A value in a short notation: `{a: [1, ~]}`.
    private func short(_ value: YAMLValue?) -> String {
        switch value?.content {
        case nil: "nothing"
        case .null: "~"
        case .scalar(let text): text
        case .sequence(let list): "[" + list.map(short).joined(separator: ", ") + "]"
        case .set(let members): "set {" + members.map(short).joined(separator: ", ") + "}"
        case .mapping(let pairs): "{" + pairs.map { "\($0.key): \(short($0.value))" }.joined(separator: ", ") + "}"
        }
    }

    @Test(arguments: [
        ("a: 1\nb: [x, 'y z', \"null\", null, ~, ]\n", "{a: 1, b: [x, y z, null, ~, ~]}"),
        ("a:\nb: no\nc: 0755\n", "{a: ~, b: no, c: 0755}"),
        ("allow: [127.0.0.0/8, ::1]", "{allow: [127.0.0.0/8, ::1]}"),
        ("allow: [::1, ::, ::/0, fe80::/10, ::ffff:1.2.3.4]", "{allow: [::1, ::, ::/0, fe80::/10, ::ffff:1.2.3.4]}"),
        ("{a: ::1, b: [::]}", "{a: ::1, b: [::]}"),
        ("a: ['::1', \"[::1]:80\"] # [::1\nb: it's ::1", "{a: [::1, [::1]:80], b: it's ::1}"),
        ("\u{FEFF}a: 1", "{a: 1}"),
        ("a: !!set {x, ~, 'y'}\nb: &s !!set {z}\nc: *s\n", "{a: set {x, ~, y}, b: set {z}, c: set {z}}"),
        (
            "a: !!set\n  x:\n  y:\nb: !!set {}\nc: !<tag:yaml.org,2002:set> {x}\n",
            "{a: set {x, y}, b: set {}, c: set {x}}"
        ),
        ("a: 1\r\nb:\r\n  - x\r\n", "{a: 1, b: [x]}"),
        ("---\na: 1\n...\n", "{a: 1}"),
        ("a: &x [1]\nb: *x\n", "{a: [1], b: [1]}"),
        ("base: &b {x: 1, y: 2}\na:\n  <<: *b\n  x: 3\n", "{base: {x: 1, y: 2}, a: {x: 3, y: 2}}"),
        ("a:\n  <<: [{x: 1}, {x: 2, y: 2}]\n", "{a: {x: 1, y: 2}}"),
        ("a: &x 1\nb: &x 2\nc: *x\n", "{a: 1, b: 2, c: 2}"),
        ("\"a\\0\": !!str 5\nb: ! null\n", "{a\u{0}: 5, b: ~}"),
        ("", "nothing"), ("# only\n", "nothing"), ("---\n", "~"), ("plain", "plain"),
    ]) func reads(_ text: String, _ expected: String) {
        let (value, problems) = compose(text)
        #expect(short(value) == expected)
        #expect(problems == [])
    }

    @Test(arguments: [
        (
            "a:\n\tb: 1\n",
            "f:2:1: error: the line is indented with a tab; YAML takes only spaces there"
        ),
        (
            "a:\n  - b: 1\n\t  c: 2\n",
            "f:3:1: error: the line is indented with a tab; YAML takes only spaces there"
        ),
        (
            "match: *.example.com\n",
            "f:1:9: error: a value that begins with * must be quoted, e.g. \"*.example.com\""
        ),
        (
            "match: **.example.com\n",
            "f:1:9: error: a value that begins with * must be quoted, e.g. \"*.example.com\""
        ),
        (
            "a: *b\n",
            "f:1:4: error: a value that begins with * must be quoted, e.g. \"*.example.com\""
        ),
        (
            "listen: [::1]:7467\n",
            "f:1:14: error: an IPv6 address in brackets must be quoted, e.g. \"[::1]:7467\""
        ),
        (
            "listen: [[::1]:7467]\n",
            "f:1:15: error: an IPv6 address in brackets must be quoted, e.g. \"[::1]:7467\""
        ),
        ("a: @b\n", "f:1:4: error: a value that begins with one of @ ` % must be quoted"),
        (
            "a: b: c\n",
            "f:1:5: error: a value with \": \" in it must be quoted, and keys of one mapping start in the same column"
        ),
        ("a: [1, 2\nb: 3\n", "f:2:2: error: the list that begins with [ in line 1 isn't closed: ] is missing"),
        ("a: {b: 1\nc: 2\n", "f:2:2: error: the mapping that begins with { in line 1 isn't closed: } is missing"),
        ("a: \"b\nc: 1\n", "f:3:1: error: the quotation mark in line 1 isn't closed"),
        (
            "hosts:\n  - match:api.test\n    pinning: none\n",
            "f:3:12: error: there is no space after the colon in line 2: write match: …"
        ),
        (
            "listen:127.0.0.1\nworkers: 1\n",
            "f:2:8: error: there is no space after the colon in line 1: write listen: …"
        ),
        (
            "hosts:\n  -match: api.test\n    pinning: none\n",
            "f:3:12: error: there is no space after the dash in line 2: write - match:"
        ),
        (
            "a:\n  pins:\n  -sha256/AAAA\n",
            "f:4:1: error: there is no space after the dash that begins an element, in line 3"
        ),
        ("a: 1\nb\n", "f:3:1: error: there is no colon after the key in line 2; write KEY: VALUE"),
        (
            "a:\n  b: 1\n c: 2\n",
            """
            f:3:2: error: the line isn't indented like the keys of its mapping, which begins in line 1: they start in \
            the same column
            """
        ),
        (
            "a:\n  - b\n c: 2\n",
            """
            f:3:2: error: the line isn't indented like the keys of its mapping, which begins in line 1: they start in \
            the same column
            """
        ),
        (
            "- a\nb: 1\n",
            """
            f:2:1: error: the line isn't indented like the elements of its list, which begins in line 1: they start \
            with \"- \" in the same column
            """
        ),
        ("a: \"b\" c\n", "f:1:8: error: nothing can follow the value that ends before this; quote all of it"),
        (
            "a: 1\n---\nb: 2\n",
            """
            f:2:1: error: not valid YAML: expected a single document in the stream in line 1, but found another \
            document; only one document is read
            """
        ),
        ("a: \u{7}\n", "f:1:4: error: not valid YAML: control characters are not allowed"),
        ("a: 1\nb: \u{0}\n", "f:2:4: error: the character U+0 is not allowed"),
        ("a: \u{10F000}\n", "f:1:4: error: the character U+10F000 is not allowed"),
        ("? a\n: b\n", "f:1:1: error: a key must be a word; \"? \" is not understood here"),
        ("[a, b]: c\n", "f:1:7: error: a key must be a word, not a list or a mapping"),
        ("a: &a [*a]\n", "f:1:8: error: a value that begins with * must be quoted, e.g. \"*.example.com\""),
        ("x: &a [1]\n*a : c\n", "f:2:4: error: a key must be a word, not an alias"),
        ("a:\n  <<: 1\n", "f:2:3: error: \"<<\" takes a mapping or a list of mappings, e.g. <<: *name"),
    ]) func refuses(_ text: String, _ problem: String) {
        #expect(compose(text).problems == [problem])
    }

    @Test func namesThePlaceOfWhatIsNotUTF8() {
        let (value, problems) = compose(Array("a: 1\nbä: ".utf8) + [0xFF] + Array("\n".utf8))
        #expect(value == nil)
        #expect(problems == ["f:2:5: error: the file is not UTF-8 here"])
        #expect(compose([0xFF, 0xFE, 0x61, 0]).problems == ["f:1:1: error: the file is UTF-16; save it as UTF-8"])
    }

    @Test func reportsEveryDuplicateKeyAndReadsTheRest() {
        let (value, problems) = compose("a: 1\nb: {x: 1, x: 2}\na: 2\nc: 3\na: 4\n")
        #expect(short(value) == "{a: 1, b: {x: 1}, c: 3}")
        #expect(
            problems == [
                "f:2:11: error: key \"x\" is already written in line 2",
                "f:3:1: error: key \"a\" is already written in line 1",
                "f:5:1: error: key \"a\" is already written in line 1",
            ])
    }

    @Test func reportsADuplicateOfAQuotedKey() {
        let (value, problems) = compose("'a': 1\nb: 2\n'a': 2\n")
        #expect(short(value) == "{a: 1, b: 2}")
        #expect(problems == ["f:3:1: error: key \"a\" is already written in line 1"])
    }

    @Test func reportsADuplicateAmongManyKeysAndOfAMergeKey() {
        let keys = (1...20).map { "k\($0): 1\n" }.joined()
        #expect(
            compose("\(keys)k20: 2\nk3: 2\n<<: {a: 1}\n<<: {b: 1}\n").problems == [
                "f:21:1: error: key \"k20\" is already written in line 20",
                "f:22:1: error: key \"k3\" is already written in line 3",
                "f:24:1: error: key \"<<\" is already written in line 23",
            ])
    }

    @Test func countsColumnsAfterLineBreaksOfEveryKind() {
        #expect(
            compose("ä: 1\r\nb: \u{2028}  c\nd: \u{7}\n").problems
                == ["f:4:4: error: not valid YAML: control characters are not allowed"])
    }

    @Test func boundsWhatAliasesExpandTo() {
        var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...9 {
            let aliases = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            text += "a\(level): &a\(level) [\(aliases)]\n"
        }
        let (value, problems) = compose(text)
        #expect(value == nil)
        #expect(problems.count == 1)
        #expect(problems.first?.hasSuffix("its aliases expand to more than 2000000 values") == true)
    }

    @Test(arguments: ["[", "{a: ", "- ", "? "]) func boundsNesting(_ opening: String) {
        let (value, problems) = compose("a:\n  " + String(repeating: opening, count: 100_000))
        #expect(value == nil)
        #expect(problems.count == 1)
    }

    @Test func namesThePlaceOfTheDeepestNesting() {
        let deep = YAMLDocument.depthLimit
        #expect(compose(String(repeating: "[", count: deep) + String(repeating: "]", count: deep)).problems == [])
        #expect(
            compose(String(repeating: "[", count: deep + 1)).problems
                == ["f:1:\(deep + 1): error: lists and mappings are nested more than 256 deep"])
    }

    /// A truncated file is read or refused, and never crashes.
    @Test func survivesEveryPrefix() {
        let text = "a: &x [::1, 'b', \"c\\n\"]\nä: {<<: {y: 1}, z: *x}\nq: |\n  text\nr: !!str 5 # c\n"
        let bytes = Array(text.utf8)
        for length in 0...bytes.count {
            let (value, problems) = compose(Array(bytes[..<length]))
            if problems.isEmpty, length > 0 { #expect(value != nil) }
        }
        #expect(compose(bytes).problems == [])
    }
}
