import Testing

@testable import PinproxySerialization

/// Valid values in rules, and the errors for invalid ones.
@Suite struct RuleValueTests {
    private func reason<Value>(_ text: String, _ make: (String) throws -> Value) -> String? {
        do {
            _ = try make(text)
            return nil
        } catch {
            return (error as? InvalidValue)?.description ?? "\(error)"
        }
    }

    @Test(arguments: ["X-Client", "User-Agent", "x", "!#$%&'*+-.^_`|~09azAZ", "Authorization", "Via", "Cookie"])
    func namesHeadersThatARuleMayChange(_ name: String) throws {
        #expect(try HeaderName(name).description == name)
        #expect(try HeaderName(name) == HeaderName(name.uppercased()))
        #expect(try HeaderName(name).hashValue == HeaderName(name.lowercased()).hashValue)
    }

    @Test(arguments: [
        ("", "the name of a field is empty"), ("a b", "is not a field name"), ("X-A:", "is not a field name"),
        ("X\r\nY", "is not a field name"), ("ä", "is not a field name"), (":authority", "HTTP/2 pseudo-header field"),
        ("Host", "it follows the URL"), ("hOsT", "hOsT can't be changed"),
        ("Content-Length", "part of the framing"), ("Transfer-Encoding", "part of the framing"),
        ("Trailer", "part of the framing"), ("Connection", "hop-by-hop"), ("Keep-Alive", "hop-by-hop"),
        ("TE", "hop-by-hop"), ("Upgrade", "hop-by-hop"), ("HTTP2-Settings", "hop-by-hop"),
        ("Expect", "for each connection"),
        ("Proxy-Connection", "never reaches the server"), ("Proxy-Authorization", "never reaches the server"),
        ("proxy-anything", "never reaches the server"),
    ])
    func refusesNamesWithTheReason(_ name: String, _ words: String) throws {
        let said = reason(name) { try HeaderName($0) }
        let text = try #require(said)
        #expect(text.contains(words), "\(text)")
    }

    @Test(arguments: ["", "a", "a b\tc", "text/plain; q=0.5", "grüße"]) func takesHeaderValues(_ text: String) throws {
        #expect(try HeaderValue(text).text == text)
        #expect(try HeaderValue(text).description == text)
    }

    @Test(arguments: ["a\r\nX: y", "a\n", "\r", "a\0b", "\u{1B}[0m", "\u{7F}", " a", "a ", "\t"])
    func refusesHeaderValuesThatWouldBeReadAsSomethingElse(_ text: String) {
        let said = reason(text) { try HeaderValue($0) }
        #expect(said != nil)
    }

    /// No byte that could begin another line or message gets into a value, wherever it is.
    @Test func noControlCharacterGetsIntoAValue() {
        for code in (0..<0x20).map(UInt8.init) + [0x7F] where code != 9 {
            for text in ["\(Character(Unicode.Scalar(code)))a", "a\(Character(Unicode.Scalar(code)))a"] {
                #expect((try? HeaderValue(text)) == nil)
                #expect((try? HeaderValue(text, isSecret: true)) == nil)
                #expect((try? Credentials(user: text, password: Secret("p"))) == nil)
                #expect((try? Credentials(user: "u", password: Secret(text))) == nil)
                #expect((try? MultipartPart(name: text, content: .value(""))) == nil)
            }
        }
    }

    @Test func secretsAreNeverPrinted() throws {
        let credentials = try Credentials(user: "ann", password: Secret("hunter2"))
        let value = try HeaderValue("Bearer hunter2", isSecret: true)
        var rules = RequestRules()
        rules.authorization = credentials
        rules.headers = [HeaderField(name: try HeaderName("X-Key"), value: value)]
        var dumped = ""
        dump(rules, to: &dumped)
        for text in [
            dumped, "\(rules)", String(reflecting: rules), "\(credentials)", "\(value)", String(reflecting: value),
        ] {
            #expect(!text.contains("hunter2"), "\(text)")
        }
        #expect(credentials.password.text == "hunter2")
        #expect(value.text == "Bearer hunter2")
        let said = reason("hunter2\r") { try HeaderValue($0, isSecret: true) }
        #expect(said?.contains("hunter2") == false)
    }

    @Test(arguments: ["en", "de-AT", "*", "zh-Hant-TW", "sl-rozaj-1994", "i-klingon", "no"])
    func takesLanguages(_ text: String) throws {
        #expect(try LanguageRange(text).description == text)
    }

    @Test(arguments: ["", "-", "de-", "-de", "de_AT", "d3", "ninelettr", "de;q=0.5", "de, en", "*-AT", "ü"])
    func refusesWhatIsNoLanguage(_ text: String) {
        let said = reason(text) { try LanguageRange($0) }
        #expect(said != nil)
    }

    @Test(arguments: [("200", 200...200), ("200-299", 200...299), ("100-599", 100...599), ("304-304", 304...304)])
    func takesStatuses(_ text: String, _ codes: ClosedRange<Int>) throws {
        #expect(try StatusRange(text).codes == codes)
    }

    @Test(arguments: [
        "", "2xx", "200-", "-200", "299-200", "99", "600", "100-600", "0200", "+200", "200-250-299", "200 - 299", "２００",
    ])
    func refusesWhatIsNoStatus(_ text: String) {
        let said = reason(text) { try StatusRange($0) }
        #expect(said != nil)
    }

    @Test(arguments: [
        ("application/json", "application/json"), ("Image/*", "image/*"), ("*/*", "*/*"),
        ("application/vnd.api+json", "application/vnd.api+json"),
    ])
    func takesMediaRanges(_ text: String, _ canonical: String) throws {
        #expect(try MediaRange(text).description == canonical)
    }

    @Test(arguments: [
        "", "json", "application/", "/json", "*/json", "a/b/c", "application/*+json", "text/plain; charset=utf-8",
        "a b/c", "*",
    ])
    func refusesWhatIsNoMediaRange(_ text: String) {
        let said = reason(text) { try MediaRange($0) }
        #expect(said != nil)
    }

    @Test(arguments: ["text/plain", "text/plain; charset=utf-8", "text/plain;charset=\"utf 8\"", "a/b; c=d; e=f"])
    func takesMediaTypes(_ text: String) throws { #expect(try MediaType(text).description == text) }

    @Test(arguments: [
        "", "text", "text/*", "text/plain;", "text/plain; charset", "text/plain; =x", "text/plain; a=\"b",
        "text/plain\r\nX: y", "text/plain; a=b c",
    ])
    func refusesWhatIsNoMediaType(_ text: String) {
        let said = reason(text) { try MediaType($0) }
        #expect(said != nil)
    }

    @Test(arguments: ["GET", "PROPFIND", "M-SEARCH"]) func takesMethods(_ text: String) throws {
        let method = try MethodName(text)
        func equals(_ other: String) -> Bool {
            let bytes = Array(other.utf8)
            return method.equals(bytes.span)
        }
        #expect(equals(text))
        for other in [text + "X", String(text.dropLast()), text.lowercased(), ""] { #expect(!equals(other)) }
    }

    @Test(arguments: ["", "get", "Get", "G T", "GET,POST", "CONNECT", "GÉT"]) func refusesWhatIsNoMethod(_ text: String)
    {
        let said = reason(text) { try MethodName($0) }
        #expect(said != nil)
    }

    /// A word is a number exactly if it is one in JSON.
    @Test(arguments: [
        ("0", true), ("-0", true), ("12", true), ("-1.5", true), ("1e400", true), ("1E-7", true), ("0.0", true),
        ("123456789012345678901234567890", true), ("0755", false), ("+1", false), (".5", false), ("1.", false),
        ("1e", false),
        ("0x1F", false), ("1_000", false), ("", false), ("-", false), ("1 ", false), ("NaN", false), (".inf", false),
        ("--1", false),
    ])
    func readsNumbersAsJSONDoes(_ word: String, _ isNumber: Bool) {
        #expect(ParameterValue(word: word) == (isNumber ? .number(word) : .string(word)))
    }

    @Test func readsTruthValues() {
        #expect(ParameterValue(word: "true") == .bool(true))
        #expect(ParameterValue(word: "FALSE") == .bool(false))
        #expect(ParameterValue(word: "yes") == .string("yes"))
    }

    @Test func usersHaveNoColon() {
        #expect((try? Credentials(user: "a:b", password: Secret("p"))) == nil)
        #expect((try? Credentials(user: "", password: Secret("p"))) == nil)
        #expect((try? Credentials(user: "a", password: Secret(""))) == nil)
    }
}
