import Foundation
import PinproxyHTTPWire
import Testing

@Suite struct RequestURLTests {
    static func url(_ text: String) throws -> RequestURL {
        let isSecure = text.hasPrefix("https:")
        let rest = text.dropFirst(isSecure ? 8 : 7)
        let authority = rest.prefix { $0 != "/" }
        return RequestURL(
            isSecure: isSecure,
            authority: try Authority.parse(String(authority), defaultPort: isSecure ? 443 : 80).get(),
            target: Array(rest[authority.endIndex...].utf8))
    }

    static func resolve(
        _ location: String, at base: String = "http://a/b/c/d;p?q"
    ) throws -> Result<String, LocationDefect> {
        let base = try url(base)
        return Result { () throws(LocationDefect) in try resolve(location[...], at: base).description }
    }

    static func resolve(_ location: Substring, at base: RequestURL) throws(LocationDefect) -> RequestURL {
        let bytes = Array(location.utf8)
        return try base.resolving(bytes.span)
    }

    /// RFC 3986 sections 5.4.1 and 5.4.2; the part after # isn't sent.
    @Test(arguments: [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y"),
        (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
        ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g"),
    ])
    func referencesAreResolvedAsTheStandardSays(_ reference: String, _ expected: String) throws {
        #expect(try Self.resolve(reference) == .success(expected))
    }

    @Test(arguments: [
        ("https://B.test:443/x", "https://b.test/x"), ("HTTPS://b.test:8443?y", "https://b.test:8443/?y"),
        ("http://b.test", "http://b.test/"),
        ("//[::1]:81/x", "http://[::1]:81/x"), ("  /x\t", "http://a/x"), ("?", "http://a/b/c/d;p?"),
        ("/x#", "http://a/x"),
        ("//b.test#@c/", "http://b.test/"), ("//b.test?@c/", "http://b.test/?@c/"), ("/a//../b", "http://a/a/b"),
        ("/.//evil.test/", "http://a//evil.test/"),
        // Encoded as browsers do; a backslash is no slash.
        ("/a b?c d", "http://a/a%20b?c%20d"), ("/ä", "http://a/%C3%A4"),
        ("/<\"`{|}^>", "http://a/%3C%22%60%7B%7C%7D%5E%3E"),
        ("/\\evil.test", "http://a/%5Cevil.test"), ("\\\\evil.test", "http://a/b/c/%5C%5Cevil.test"),
        ("/%zz%2e%", "http://a/%zz%2e%"),
        ("/%0d%0aX:y", "http://a/%0d%0aX:y"), ("/[x]!$&'()*+,;=:@", "http://a/[x]!$&'()*+,;=:@"),
        ("./a:b", "http://a/b/c/a:b"),
    ])
    func locationsOfTheWildAreResolved(_ reference: String, _ expected: String) throws {
        #expect(try Self.resolve(reference) == .success(expected))
    }

    @Test(arguments: [
        ("", LocationDefect.empty), (" \t ", .empty), ("http:", .noHost), ("http:g", .noHost), ("http:/g", .noHost),
        ("https://", .noHost),
        ("http:///g", .noHost), ("//", .noHost), ("///g", .noHost), ("//?x", .noHost), ("http://#x", .noHost),
        ("ftp://a/", .scheme("ftp")), ("javascript:alert(1)", .scheme("javascript")),
        ("file:///etc/passwd", .scheme("file")),
        ("localhost:8080/x", .scheme("localhost")), ("gopher+x.-1:", .scheme("gopher+x.-1")),
        ("//user@b.test/", .userInformation), ("http://u:p@b.test/", .userInformation),
        ("//good.test@evil.test", .userInformation),
        ("/a\r\nX: y", .controlCharacter(13)), ("/a\u{0}", .controlCharacter(0)), ("/a\tb", .controlCharacter(9)),
        ("/\u{7F}", .controlCharacter(127)),
        ("/x#\n", .controlCharacter(10)), ("//b\\evil.test/", .host(.invalidCharacter)),
        ("//b c/", .host(.controlCharacter)), ("//bü.test/", .host(.notASCII)),
        ("//b%2etest/", .host(.percentEncoding)), ("//b:0/", .host(.invalidPort)), ("//0x7f.1/", .host(.numericHost)),
        ("//2130706433/", .host(.numericHost)),
    ])
    func whatIsHostileOrUnknownIsRefused(_ location: String, _ defect: LocationDefect) throws {
        #expect(try Self.resolve(location) == .failure(defect))
    }

    @Test func lengthsAreBounded() throws {
        let longest = "/" + String(repeating: "a", count: RequestURL.longest - 1)
        #expect(try Self.resolve(longest) == .success("http://a" + longest))
        #expect(try Self.resolve(longest + "a") == .failure(.tooLong(8192)))
        #expect(try Self.resolve(String(repeating: "a", count: 10_000)) == .failure(.tooLong(8192)))
        #expect(try Self.resolve("/" + String(repeating: "ä", count: 2000)) == .failure(.tooLong(8192)))
        #expect(try Self.resolve(String(repeating: "../", count: 2730) + "x") == .success("http://a/x"))
        guard case .failure(let error) = try Self.resolve(String(repeating: "x", count: 8000) + "://") else {
            Issue.record("accepted")
            return
        }
        #expect(error.description.utf8.count < 120)
    }

    @Test func everyPrefixIsAURLOrADefect() throws {
        let base = try Self.url("https://a.test/b/c?d")
        let location = "https://h.test:8443/a/./b/../c?d=/../e#f"
        for end in 0...location.count {
            do throws(LocationDefect) {
                let url = try Self.resolve(location.prefix(end), at: base)
                #expect(url.target.first == UInt8(ascii: "/") && url.isSecure, "\(end)")
                // A resolved URL means the same when it is read again.
                let again = try Self.resolve(url.description[...], at: base)
                #expect(again == url)
            } catch {
                #expect(end < 10 || 15...19 ~= end, "\(end): \(error)")
            }
        }
    }

    @Test func aRequestWithoutAPathHasARoot() throws {
        let authority = try Authority.parse("a.test:80", defaultPort: nil).get()
        for (target, expected) in [("*", "/"), ("", "/"), ("?q", "/?q"), ("/x", "/x")] {
            #expect(
                RequestURL(isSecure: false, authority: authority, target: Array(target.utf8)).target
                    == Array(expected.utf8))
        }
    }

    @Test func originsCompareSchemeHostAndPort() throws {
        #expect(try Self.url("https://A.test:443/x").origin == Self.url("https://a.test/y").origin)
        #expect(try Self.url("https://a.test:80/").origin != Self.url("http://a.test/").origin)
        #expect(try Self.url("https://a.test:444/").origin != Self.url("https://a.test/").origin)
        #expect(try Self.url("https://a.test/").origin != Self.url("https://b.a.test/").origin)
        #expect(try Self.url("http://[::1]:80/").origin.host == "[::1]")
    }

    /// Agrees with Python's urljoin for references of all shapes, except where Python has other rules: empty segments,
    /// and dots after another host.
    @Test func pythonResolvesTheSame() throws {
        var random = Seeded(11)
        let pieces = ["a", "..", ".", "b;c=1", "..d", "e.", "%2e", "x:y", "f=g&h", "..."]
        func path(dotted: Bool = true) -> String {
            (0..<Int.random(in: 1...6, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .filter { dotted || $0 != "." && $0 != ".." }.joined(separator: "/")
                + (Bool.random(using: &random) ? "/" : "")
        }
        let cases = (0..<3000).map { index -> (base: String, reference: String) in
            let prefix = ["", "/", "//h.test/", "https://i.test:81/", "./"][index % 5]
            let query = Bool.random(using: &random) ? "?" + path() : ""
            let reference = index % 50 == 0 ? "?" + path() : prefix + path(dotted: !prefix.contains("h")) + query
            return ("http://a.test/" + path() + (Bool.random(using: &random) ? "?" + path() : ""), reference)
        }
        // Leaves out those that accidentally begin with a scheme.
        .filter { !$0.reference.hasPrefix("x:y") }
        let python = Process()
        python.executableURL = URL(filePath: "/usr/bin/env")
        python.arguments = [
            "python3", "-c",
            "import sys,urllib.parse as u\nfor l in sys.stdin:\n b,r=l.split()\n print(u.urljoin(b,r))",
        ]
        let (input, output) = (Pipe(), Pipe())
        python.standardInput = input
        python.standardOutput = output
        try python.run()
        let text = cases.map { "\($0.base) \($0.reference)\n" }.joined()
        let writer = Thread {
            try? input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
            try? input.fileHandleForWriting.close()
        }
        writer.start()
        let answers = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self).split(
            separator: "\n")
        python.waitUntilExit()
        try #require(answers.count == cases.count)
        for (index, (base, reference)) in cases.enumerated() {
            let resolved = try Self.resolve(reference, at: base)
            #expect(resolved == .success(String(answers[index])), "\(reference) at \(base)")
        }
    }
}
