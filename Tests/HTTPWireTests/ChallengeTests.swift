import PinproxyHTTPWire
import Testing

@Suite struct ChallengeTests {
    /// Challenges, one line each: `scheme|token68|name=value|…`.
    static func read(_ values: String...) -> [String] {
        var list: [Challenge] = []
        for value in values {
            let bytes = Array(value.utf8)
            Challenge.append(of: bytes.span, to: &list)
        }
        return list.map(shown)
    }

    private static func parse(_ value: Span<UInt8>) -> [Challenge] {
        var list: [Challenge] = []
        Challenge.append(of: value, to: &list)
        return list
    }

    static func shown(_ challenge: Challenge) -> String {
        let names = ["realm", "nonce", "qop", "algorithm", "stale", "domain", "opaque", "title", "x", "y"]
        let parameters = names.compactMap { name in
            challenge.parameters[name].map { "\(name)=\(String(decoding: $0, as: UTF8.self))" }
        }
        let opaque = challenge.token68.map { [String(decoding: $0, as: UTF8.self)] } ?? []
        return ([challenge.scheme] + opaque + parameters).joined(separator: "|")
    }

    @Test(arguments: [
        (#"Basic realm="simple""#, ["basic|realm=simple"]),
        (#"Basic realm="a", charset="UTF-8""#, ["basic|realm=a"]),
        // RFC 9110 section 11.6.1.
        (
            #"Basic realm="simple", Newauth realm="apps", x=1, title="Login to \"apps\"""#,
            ["basic|realm=simple", #"newauth|realm=apps|title=Login to "apps"|x=1"#]
        ),
        ("Negotiate", ["negotiate"]), ("Negotiate, NTLM", ["negotiate", "ntlm"]),
        ("Negotiate YII=, Basic realm=a", ["negotiate|YII=", "basic|realm=a"]),
        ("Negotiate a-._~+/9==", ["negotiate|a-._~+/9=="]), ("NTLM abc", ["ntlm|abc"]),
        (
            #"DIGEST Realm="a, b" , NONCE = "c" ,qop=auth,,algorithm=MD5 ,"#,
            ["digest|realm=a, b|nonce=c|qop=auth|algorithm=MD5"]
        ),
        (#", ,Basic realm="", ,"#, ["basic|realm="]), ("Basic\trealm=\"a\tb\"", ["basic|realm=a\tb"]),
        (#"Basic realm="a\\b\"c\d""#, [#"basic|realm=a\b"cd"#]),
        // Without the required quotes.
        ("Digest realm=/a:b, nonce=YWJj==, domain=/x?y", ["digest|realm=/a:b|nonce=YWJj==|domain=/x?y"]),
        // Nothing.
        ("", []), (",", []), ("  ,\t, ", []),
    ])
    func challengesAreRead(_ text: String, _ expected: [String]) {
        #expect(Self.read(text) == expected)
    }

    @Test func severalFieldsAreOneList() {
        #expect(Self.read("Basic realm=a", "", #"Digest realm="b""#) == ["basic|realm=a", "digest|realm=b"])
        // A parameter never joins a challenge from another field.
        #expect(Self.read("Basic realm=a", "nonce=x", "Basic realm=b") == ["basic|realm=a", "basic|realm=b"])
    }

    @Test(arguments: [
        // Only this challenge is dropped.
        ("Basic realm=a, realm=b, Digest realm=c", ["digest|realm=c"]),
        ("Basic realm=a, REALM=a, Digest realm=c", ["digest|realm=c"]),
        ("Negotiate abc=, realm=a, Digest realm=c", ["digest|realm=c"]),
        // The rest of the field is dropped.
        (#"Basic realm=a, Digest realm="b, Basic realm=c"#, ["basic|realm=a"]),
        (#"Basic realm=a, Digest realm="b\"#, ["basic|realm=a"]),
        ("Basic realm=a, Digest realm=, nonce=b", ["basic|realm=a"]),
        (#"Basic realm=a, Digest realm="b" nonce="c", Basic realm=d"#, ["basic|realm=a"]),
        (#"Basic realm=a, Digest realm=b"c""#, ["basic|realm=a"]),
        ("Basic realm=a, =b", []), ("realm=a, Basic realm=b", []), ("\"Basic\" realm=a", []), ("@", []),
        ("Basic realm=a\u{0}", []), ("Basic realm=\"a\r\nX: y\"", []), ("Basic realm=\"a\u{7F}\"", []),
        ("Basic realm=ä", []),
        ("Basic realm=\"a\\\n\"", []),
    ])
    func whatIsMalformedIsLeftOut(_ text: String, _ expected: [String]) {
        #expect(Self.read(text) == expected)
    }

    @Test func bytesBeyondASCIIStayInQuotes() {
        var list: [Challenge] = []
        let field = Array("Basic realm=\"".utf8) + [0xE4, 0xFF] + Array("\"".utf8)
        Challenge.append(of: field.span, to: &list)
        #expect(list.first?.parameters["realm"] == [0xE4, 0xFF])
    }

    @Test func everyPrefixIsReadWithoutInventingChallenges() {
        let text = #"Digest realm="a, \"b", nonce=c==, qop="auth,auth-int", Negotiate YII=, Basic realm="x" , NTLM"#
        let bytes = Array(text.utf8)
        let whole = Self.parse(bytes.span)
        #expect(whole.count == 4)
        for end in 0..<bytes.count {
            let list = Self.parse(bytes.span.extracting(0..<end))
            #expect(list.count <= whole.count)
            // The beginning of a parameter's name may look like a scheme; nothing else is misread.
            for (part, challenge) in zip(list.dropLast(), whole) {
                #expect(part.scheme == challenge.scheme && part.token68 == challenge.token68, "\(end)")
                for name in ["realm", "nonce", "qop"] where part.parameters[name] != nil {
                    #expect(part.parameters[name] == challenge.parameters[name], "\(end)")
                }
            }
        }
    }

    @Test func hostileFieldsAreBounded() {
        let thousand = (0..<1000).map { "S\($0) realm=a" }.joined(separator: ", ")
        #expect(Self.read(thousand).count == Challenge.most)
        #expect(Self.read(thousand, thousand).count == Challenge.most)
        let realm = String(repeating: "r\\\"", count: 80_000)
        #expect(Self.read("Basic realm=\"\(realm)\"").first?.utf8.count == "basic|realm=".utf8.count + 160_000)
        let many = (0..<100_000).map { "p\($0)=1" }.joined(separator: ",")
        #expect(Self.read("Basic \(many), Digest realm=a") == ["digest|realm=a"])
        // Input that would take long if it were read repeatedly.
        for piece in ["a ", "a,", "a=", "\"", "a=\"", "=,", "\\", "a \"", ", "] {
            #expect(Self.read(String(repeating: piece, count: 100_000)).count <= Challenge.most)
        }
    }

    @Test func randomBytesAreReadToTheEnd() {
        var random = Seeded(7)
        let alphabet = Array("aB=\"\\, \t;/\u{0}\r".utf8) + [0xFF]
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in alphabet.randomElement(using: &random)!
            }
            for challenge in Self.parse(bytes.span) {
                #expect(!challenge.scheme.isEmpty)
                #expect(challenge.token68 == nil || challenge.parameters.count == 0)
            }
            _ = AuthParameters.parse(bytes.span)
        }
    }

    @Test func anInfoFieldIsParametersAlone() {
        func read(_ text: String) -> AuthParameters? {
            let bytes = Array(text.utf8)
            return AuthParameters.parse(bytes.span)
        }
        let info = read(#"nextnonce="a\"b", qop=auth, nc=00000001"#)
        #expect(info?["nextnonce"] == Array("a\"b".utf8))
        #expect(info?.count == 3)
        #expect(read("")?.count == 0)
        for text in ["nextnonce", "nextnonce=a b", "nextnonce=a, nextnonce=b", "Digest nextnonce=a", "nextnonce=\"a"] {
            #expect(read(text) == nil, "\(text)")
        }
    }
}
