import Foundation
import Testing

/// Header rules, as the origin sees them.
@Suite(.sharedBed(RuleHeaderBed.prepare), .timeLimit(.minutes(5)))
struct RuleHeaderTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    static let password = "hunter2-of-the-rules"
    static let token = "t0ken-of-the-rules"

    private func received(_ arguments: String...) async throws -> ReceivedRequest {
        try ReceivedRequest(try await shared.bed.curl(via: shared.proxy, arguments))
    }

    @Test func fieldsAreSetRemovedAndFilledIn() async throws {
        let plain = try await received(shared.url + "/received/headers/a")
        #expect(plain.values("X-Client") == ["fleet"], "\(plain)")
        #expect(plain.values("X-Own") == ["default"])
        #expect(plain.values("User-Agent") == ["tool/1"])
        #expect(plain.values("Accept-Language") == ["de-AT;q=1, de;q=0.9, en;q=0.8"])
        let basic = Data("ann:\(Self.password)".utf8).base64EncodedString()
        #expect(plain.values("Authorization") == ["Basic \(basic)"])
    }

    @Test func whatTheRequestBringsItselfStaysWhereTheRuleSaysSo() async throws {
        let own = try await received(
            "-H", "x-own: mine", "-H", "Accept-Language: fr", "-H", "authorization: Bearer abc", "-A", "mine",
            "-e", "http://a.test/", "-H", "x-gone: 1", "-H", "X-Gone: 2", "-b", "a=b",
            shared.url + "/received/headers/b")
        #expect(own.values("X-Own") == ["mine"], "\(own)")
        #expect(own.values("Accept-Language") == ["fr"])
        #expect(own.values("Authorization") == ["Bearer abc"])
        #expect(own.values("User-Agent") == ["tool/1"])
        for gone in ["Referer", "X-Gone", "Cookie"] { #expect(own.values(gone) == [], "\(own)") }
    }

    /// A field that Connection names belongs to the client's hop; the rule's own is for the origin.
    @Test func aClientCannotTakeAFieldOfTheRulesAwayByConnection() async throws {
        let run = try await received(
            "-H", "Connection: User-Agent, X-Client, Authorization", shared.url + "/received/headers/c")
        #expect(run.values("X-Client") == ["fleet"] && run.values("User-Agent") == ["tool/1"], "\(run)")
        #expect(run.values("Authorization").count == 1)
    }

    @Test func aPathOutsideTheRulesIsLeftAlone() async throws {
        let run = try await received("-A", "mine", "-b", "a=b", shared.url + "/received/other")
        #expect(run.values("User-Agent") == ["mine"] && run.values("Cookie") == ["a=b"], "\(run)")
        #expect(run.values("X-Client") == [] && run.values("Authorization") == [])
    }

    @Test(arguments: ["/received/token", "/received/headers/a"])
    func secretsDoNotGoOverPlainHTTP(path: String) async throws {
        let run = try await shared.curl("-i", shared.plainURL + path)
        #expect(run.output.hasPrefix("HTTP/1.1 403 ") && run.output.contains("in the clear"), "\(run)")
        #expect(!run.output.contains(Self.token) && !run.output.contains(Self.password))
        let plain = try #require(shared.plainOrigin)
        #expect(plain.events.all("request").allSatisfy { $0["target"]?.hasPrefix(path) != true })
        let secure = try await received(shared.url + "/received/token")
        #expect(secure.values("Authorization") == [Self.token], "\(secure)")
        for line in shared.proxy.events.lines.lines {
            #expect(!line.contains(Self.token) && !line.contains(Self.password), "\(line)")
        }
    }

    @Test func explainMasksSecrets() async throws {
        let run = try await shared.bed.run(
            [
                ProxyProcess.executable, "explain", "--config", shared.bed.path("proxy/pinproxy.yaml"), "--path",
                "/received/headers/a",
                "--method", "GET", OriginBed.name,
            ],
            environment: ProxyProcess.environment(in: shared.bed))
        #expect(run.output.contains("authorization"), "\(run)")
        #expect(!"\(run)".contains(Self.password) && !"\(run)".contains(Self.token), "\(run)")
    }

    /// To the port of the https origin, which doesn't speak plain HTTP.
    @Test func anInsecureURLGoesOutOverTLS() async throws {
        let url = "http://\(OriginBed.name):\(shared.originPort)/received/upgraded"
        let run = try await received(url)
        #expect(run.values("X-Token") == [Self.token], "\(run)")
        #expect(run.values("Host") == [shared.authority])
    }

    /// They would be an error at each request.
    @Test func checkRefusesParametersThatTheirFormatCannotExpress() async throws {
        try await withTestBed { bed in
            let pins = """
                hosts:
                  - match: a.test
                    request:
                      serializer: property-list
                      parameters: {a: {b: null}}

                """
            try ProxyProcess.write(to: bed, folder: "proxy", pins: pins, trust: nil)
            let run = try await bed.run(
                [ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(!run.succeeded, "\(run)")
            let words =
                """
                pins.yaml:5:19: error: parameters: a[b] is null, which a property list can't express (serializer: \
                property-list)
                """
            #expect(run.errors.contains(words) || run.output.contains(words), "\(run)")
        }
    }

    /// Rules can't set fields that frame a message or belong to one hop.
    @Test(arguments: [
        "Content-Length", "transfer-encoding", "Trailer", "Connection", "Keep-Alive", "TE", "Upgrade", "HTTP2-Settings",
        "Host", "Expect", "Proxy-Authorization", "Proxy-Connection", ":path",
    ])
    func checkRefusesRulesForFramingAndHops(field: String) async throws {
        try await withTestBed { bed in
            for rule in [
                "headers: {\"\(field)\": a}", "set_headers: {\"\(field)\": a}", "remove_headers: [\"\(field)\"]",
            ] {
                try ProxyProcess.write(
                    to: bed, folder: "proxy", pins: "hosts: [{match: a.test, request: {\(rule)}}]\n", trust: nil)
                let run = try await bed.run(
                    [ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed))
                #expect(!run.succeeded && run.errors.contains("error:"), "\(rule): \(run)")
            }
        }
    }

    /// Pins apply to an upgraded URL.
    @Test func anUpgradedURLIsPinned() async throws {
        try await withTestBed { bed in
            let own = try await RuleBed.prepare(
                bed, rules: [],
                extra: ["pinning: public-key", "pins: [\(String.wrongPin)]", "request: {upgrade_insecure: true}"])
            let run = try await own.curl("-i", "http://\(OriginBed.name):\(own.originPort)/received")
            #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("inning failure"), "\(run)")
        }
    }
}

private enum RuleHeaderBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        try await RuleBed.prepare(
            bed,
            rules: [
                """
                {path: /received/headers/**, request: {headers: {X-Client: fleet, X-Own: default}, \
                set_headers: {User-Agent: tool/1}, remove_headers: [Referer, X-Gone], accept_language: [de-AT, de, \
                en], \
                authorization: {user: ann, password_file: password}, cookies: strip}}
                """,
                "{path: /received/token, request: {set_headers: {Authorization: {file: token}}}}",
                "{path: /received/upgraded, request: {upgrade_insecure: true, set_headers: {X-Token: {file: token}}}}",
            ],
            files: ["password": RuleHeaderTests.password + "\n", "token": RuleHeaderTests.token + "\n"])
    }
}
