import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import Testing

@testable import PinproxyConfiguration

@Suite struct BaseURLTests {
    static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private static func bed(_ entries: String...) throws -> RuleBed {
        try RuleBed("hosts:\n" + entries.map { "  - {\($0)}\n" }.joined())
    }

    /// Paths are below the base as in AFHTTPSessionManager, whether or not the base ends in a slash.
    @Test(arguments: [
        ("https://b.test/v2/", "/users?a=b", "https://b.test/v2/users?a=b"),
        ("https://b.test/v2", "/users", "https://b.test/v2/users"),
        ("https://b.test", "/users/", "https://b.test/users/"), ("http://B.test:8080/", "/", "http://b.test:8080/"),
        ("https://b.test/v2/", "", "https://b.test/v2/"), ("https://b.test/v2/", "?a", "https://b.test/v2/?a"),
        ("https://b.test/v2/", "*", "https://b.test/v2/"),
        ("https://b.test/v2/", "//c.test/x", "https://b.test/v2//c.test/x"),
        ("https://[::1]:8443/v%202", "/a%2fb", "https://[::1]:8443/v%202/a%2fb"),
    ])
    func pathsGoBelowTheBase(_ base: String, _ target: String, _ expected: String) throws {
        let snapshot = try Self.bed("match: a.test, session: {base_url: '\(base)'}").load()
        let rules = try #require(snapshot.entry(for: "a.test", port: 80)?.rules).rules(.none)
        #expect(rules.session.baseURL?.url(of: Array(target.utf8)[...]) == Array(expected.utf8))
    }

    /// No server resolves the path to one above the base.
    @Test(arguments: [
        "/../x", "/..", "/../", "/a/../../x", "/%2e%2e/x", "/%2E./x", "/.%2e%2fx", "/..\\x", "/..%5cx",
        "/a/..%2f..%2fx", "//../x",
        "/..;a=b/x", "/a/%2e%2e/%2e%2e", "/./../x", "../x", "/a/..;/../x?a=b", "/a%2f..%2f..%2fx", "/;/../../x",
    ])
    func noPathLeadsAboveTheBase(_ target: String) throws {
        let authority = try Authority.parse("b.test", defaultPort: 443).get()
        let base = BaseURL(isSecure: true, authority: authority, path: "/v2/")
        #expect(base.url(of: Array(target.utf8)[...]) == nil)
        // Nothing is above the root.
        let root = BaseURL(isSecure: true, authority: authority, path: "/")
        #expect(root.url(of: Array(target.utf8)[...]) != nil)
    }

    @Test(arguments: [
        "/a/../x", "/...", "/..a/x", "/a?/../../x", "/.", "/a/b/..%2f..%2fx", "/%252e%252e/x", "/..%20/x",
    ])
    func dotsBelowTheBaseStay(_ target: String) throws {
        let base = BaseURL(
            isSecure: true, authority: try Authority.parse("b.test", defaultPort: 443).get(), path: "/v2/")
        #expect(base.url(of: Array(target.utf8)[...]) == Array("https://b.test/v2\(target)".utf8))
    }

    @Test func aBaseIsRead() throws {
        #expect(try Self.bed("match: a.test, session: {base_url: 'https://b.test/v2/'}").problems() == [])
        // The entry's own host over TLS is no loop.
        #expect(try Self.bed("match: a.test, session: {base_url: 'https://a.test/v2/'}").problems() == [])
        // An entry for another port.
        #expect(
            try Self.bed(
                "match: a.test, session: {base_url: 'http://b.test:8080/'}", "match: b.test, session: {resume: true}"
            ).problems() == [])
        // Both have pins.
        #expect(
            try Self.bed(
                "match: a.test, session: {base_url: 'https://b.test/'}, pinning: public-key, pins: [\(Self.pin)]",
                "match: b.test, pinning: public-key, pins: [\(Self.pin)]"
            ).problems() == [])
    }

    @Test func aBaseThatCantHoldIsAnError() throws {
        func problem(_ base: String, _ more: String = "", _ others: String...) throws -> [String] {
            let own = "  - {match: a.test, session: {base_url: '\(base)'}\(more)}\n"
            return try RuleBed("hosts:\n" + own + others.map { "  - {\($0)}\n" }.joined()).problems()
                .map { String($0.dropFirst("2:41: error: base_url: ".count)) }
        }
        #expect(
            try problem("http://A.test./x") == [
                "a.test is the entry's own host, and requests would come back to it; write another host, or https://"
            ])
        #expect(
            try problem("http://b.test/", "", "match: '*.test', session: {base_url: 'https://c.test/'}") == [
                "b.test has the base_url of the entry in 3; write that URL here"
            ])
        #expect(
            try problem("http://b.test/", "", "match: b.test, pinning: public-key, pins: [\(Self.pin)]") == [
                "b.test has pins (the entry in 3), and http:// would bypass them; write an https:// URL"
            ])
        #expect(
            try problem("https://b.test/", "", "match: b.test, action: deny") == [
                "b.test is denied by the entry in 3"
            ])
        #expect(
            try problem("https://b.test/", "", "match: b.test, action: tunnel") == [
                "b.test has action: tunnel (the entry in 3), so that the proxy can't make requests there"
            ])
        #expect(
            try problem("https://b.test/", ", pinning: public-key, pins: [\(Self.pin)]") == [
                "the entry has pins, which hold for a.test only, and b.test has none; write them in an entry for b.test"
            ])
        #expect(
            try RuleBed(
                """
                defaults: {action: tunnel}\nhosts: [{match: a.test, action: intercept, session: {base_url: \
                'https://b.test/'}}]\n
                """
            )
            .problems() == [
                """
                2:64: error: base_url: b.test has action: tunnel (defaults), so that the proxy can't make requests \
                there
                """
            ])
    }

    @Test func credentialsOverHTTPAreLoud() throws {
        let bed = try Self.bed(
            "match: a.test, session: {credentials: {user: ann, password_file: secret, allow_http: true}}")
        #expect(
            bed.problems() == [
                """
                2:91: warning: insecure: allow_http answers challenges over http:// too, where anyone on the network \
                can read the password
                """
            ])
        let layers = try #require(try bed.load().entry(for: "a.test", port: 80)?.rules)
        let origin = RequestURL.Origin(
            isSecure: false, authority: try Authority.parse("a.test:80", defaultPort: nil).get())
        #expect(layers.rules(.none).session.credentials?.usable(at: origin)?.credentials.user == "ann")
        #expect(layers.keys(.none).map(\.value) == ["{user: ann, password: •••, allow_http: true}"])
        #expect(
            try Self.bed("match: a.test, session: {credentials: {user: ann, password_file: secret, allow_https: true}}")
                .problems() == [
                    "2:79: error: unknown key \"allow_https\" in \"credentials\"; did you mean \"allow_http\"?"
                ])
    }

    @Test func credentialsThatAreNeverAskedForAreAnError() throws {
        let session = "session: {credentials: {user: ann, password_file: secret}}"
        let request = "request: {authorization: {user: ann, password_file: secret}}"
        let problem =
            """
            error: credentials: request.authorization is sent with every request, so the credentials would never be \
            used; remove one of them
            """
        #expect(try Self.bed("match: a.test, \(session), \(request)").problems() == ["2:44: \(problem)"])
        #expect(
            try RuleBed("defaults: {\(request)}\nhosts: [{match: a.test, \(session)}]\n").problems() == [
                "2:48: \(problem)"
            ])
        #expect(
            try RuleBed(
                "defaults: {\(request)}\nhosts: [{match: a.test, \(session), request: {authorization: null}}]\n"
            ).problems() == [])
    }
}
