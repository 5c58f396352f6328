import Foundation
import PinproxyTestAuthority
import Testing

/// `session.redirects: follow` across origins: no client gets through the proxy what the origin that it asked isn't
/// allowed to read, and no place gets what was meant for another.
@Suite(.sharedBed(FollowedOriginBed.prepare), .timeLimit(.minutes(5)))
struct FollowedOriginTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    private func url(_ host: String, _ path: String = "/received/x") -> String {
        "https://\(host).test:\(shared.originPort)\(path)"
    }

    /// A URL of `first.test` (or another) that redirects there.
    private func redirect(
        to location: String, status: Int = 302, from host: String = "first", mark: String = "x"
    ) -> String {
        url(
            host,
            RuleBed.answer(
                mark, "HTTP/1.1 \(status) Elsewhere\r\nLocation: \(location)\r\nContent-Length: 9\r\n\r\nelsewhere"))
    }

    private func curl(_ arguments: [String]) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, arguments)
    }

    /// What arrived of a followed request.
    private func received(_ arguments: [String]) async throws -> ReceivedRequest {
        try ReceivedRequest(try await curl(arguments))
    }

    private func isPassed(_ run: Run, _ status: Int = 302) -> Bool {
        run.output.hasPrefix("HTTP/1.1 \(status) ") && !run.output.contains("Pinproxy-Location")
    }

    // MARK: Where

    @Test func anotherOriginIsFollowedOnlyIfItIsNamed() async throws {
        for location in [
            url("unnamed"), "https://first.test:\(shared.secondOriginPort)/received/x",
            "//unnamed.test:\(shared.originPort)/x",
        ] {
            let run = try await curl(["-i", redirect(to: location)])
            #expect(isPassed(run) && run.output.contains("\r\nLocation: \(location)\r\n"), "\(run)")
        }
        for location in [url("second"), url("a.wild"), url("first"), "/received/x"] {
            let run = try await curl(["-i", redirect(to: location)])
            #expect(
                run.output.hasPrefix("HTTP/1.1 200 ") && run.output.contains("Pinproxy-Location"), "\(location): \(run)"
            )
        }
        // A redirect to a named place is logged no further than others.
        let onwards = RuleBed.answer("x", "HTTP/1.1 302 F\r\nLocation: \(url("unnamed"))\r\nContent-Length: 0\r\n\r\n")
        let run = try await curl(["-i", redirect(to: url("second", onwards))])
        #expect(
            run.output.hasPrefix("HTTP/1.1 302 ") && run.output.contains("\r\nLocation: \(url("unnamed"))\r\n"),
            "\(run)")
    }

    /// Another scheme is another origin: on plain HTTP the network could read what came over https.
    @Test func anotherSchemeIsAnotherOrigin() async throws {
        func plain(_ host: String, to location: String) -> String {
            "http://\(host).test:\(shared.secondOriginPort)"
                + RuleBed.answer("x", "HTTP/1.1 301 M\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
        }
        let run = try await curl(["-i", plain("schemes", to: url("schemes"))])
        #expect(isPassed(run, 301), "\(run)")
        let followed = try await received([
            "-H", "Cookie: a=1", "-H", "Authorization: Bearer t", plain("upgraded", to: url("first")),
        ])
        #expect(followed.values("Host") == ["first.test:\(shared.originPort)"], "\(followed)")
        #expect(
            followed.values("Cookie") == [] && followed.values("Authorization") == [] && followed.values("X-Key") == [],
            "\(followed)")
    }

    @Test func whatIsPassedOnFromAnotherPlaceSaysWhereItLeads() async throws {
        // The rules of that path write the request, which is for a request of the client's own.
        let onwards = RuleBed.answer("x", "HTTP/1.1 302 F\r\nLocation: /written/there?a=b\r\nContent-Length: 0\r\n\r\n")
        let run = try await curl(["-i", redirect(to: url("second", onwards))])
        #expect(run.output.hasPrefix("HTTP/1.1 302 "), "\(run)")
        #expect(run.output.contains("\r\nLocation: \(url("second", "/written/there?a=b"))\r\n"), "\(run)")
    }

    // MARK: Browsers

    @Test(arguments: [
        "Sec-Fetch-Mode: cors", "sec-fetch-site: same-origin", "Sec-Fetch-Anything: 1", "Origin: https://first.test",
        "Origin: null",
    ])
    func aBrowserIsToldOfEveryRedirect(_ field: String) async throws {
        for location in ["/received/x", url("second")] {
            let run = try await curl(["-i", "-H", field, redirect(to: location)])
            #expect(isPassed(run) && run.output.contains("\r\nLocation: \(location)\r\n"), "\(run)")
        }
    }

    @Test func anUpgradeIsNotLedElsewhere() async throws {
        let run = try await curl([
            "-i", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", redirect(to: "/received/x"),
        ])
        #expect(isPassed(run), "\(run)")
    }

    /// A page of one origin is redirected to another and must not read its answer. That holds for public answers and
    /// for those meant for the proxy alone.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")))
    func aRealBrowserKeepsOriginsApart() async throws {
        let home = shared.bed.path("browser")
        let installed = try await shared.bed.run(
            [ProxyProcess.executable, "ca", "install", "--nss", "--config", shared.bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: shared.bed).merging(["HOME": home]) { $1 })
        #expect(installed.succeeded, "\(installed)")
        let run = try await shared.bed.run(
            [
                PythonPeer.python, PythonPeer.path("browser.py"), url("first", "/page"), "--proxy",
                "\(shared.proxy.address):\(shared.proxy.port)", "--profile", shared.bed.path("chromium"), "--fetch",
                redirect(to: url("second"), mark: "browser"), redirect(to: "/received/same", mark: "browser"),
                url("first"),
            ], environment: ["HOME": home])
        struct Seen: Decodable {
            let fetched: [String]
        }
        let fetched = try JSONDecoder().decode(Seen.self, from: Data(run.output.utf8)).fetched
        try #require(fetched.count == 3, "\(run)")
        #expect(fetched[0] == "TypeError: Failed to fetch", "\(fetched)")
        // The browser follows redirects within its origin.
        #expect(fetched[1].contains("/received/same") && fetched[2].contains("/received/x"), "\(fetched)")
    }

    // MARK: With what

    /// Neither the other entry's secrets, nor what the client sent to the first origin.
    @Test func noSecretIsLent() async throws {
        // Asked for itself it has all.
        let direct = try await received([url("second")])
        #expect(
            direct.values("X-Key") == ["geheim"] && direct.values("X-Literal") == ["open"]
                && direct.values("X-Fleet") == ["1"], "\(direct)")
        #expect(direct.values("Cookie") == ["rule=1"] && direct.values("X-Absent") == ["geheim"], "\(direct)")
        let followed = try await received([redirect(to: url("second"))])
        #expect(followed.values("X-Literal") == ["open"] && followed.values("X-Fleet") == ["1"], "\(followed)")
        for field in ["X-Key", "Cookie", "X-Absent", "Authorization"] {
            #expect(followed.values(field) == [], "\(followed)")
        }
        let authorized = try await received([redirect(to: url("authorized"))])
        #expect(authorized.values("Authorization") == [], "\(authorized)")
        #expect(try await received([url("authorized")]).values("Authorization").count == 1)
    }

    @Test func noChallengeOfAnotherOriginIsAnswered() async throws {
        let direct = try await curl(["-i", url("answering", "/login/Basic")])
        #expect(direct.output.hasPrefix("HTTP/1.1 200 "), "\(direct)")
        let run = try await curl(["-i", redirect(to: url("answering", "/login/Basic"))])
        // Nor is the client asked in the first one's name.
        #expect(run.output.hasPrefix("HTTP/1.1 401 ") && !run.output.contains("WWW-Authenticate"), "\(run)")
    }

    @Test func noCertificateIsShownForAnother() async throws {
        let run = try await curl(["-i", redirect(to: url("certified"))])
        #expect(isPassed(run), "\(run)")
        let within = try await curl(["-i", redirect(to: "/received/x", from: "certified")])
        #expect(within.output.hasPrefix("HTTP/1.1 200 "), "\(within)")
    }

    private static let ofTheClient = [
        "X-Api-Key: k", "PRIVATE-TOKEN: t", "Authorization: Bearer b", "Cookie: c=1", "Cookie2: 1",
        "Referer: https://first.test/secret",
        "If-None-Match: \"a\"", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", "X-Forwarded-For: 192.0.2.1",
        "Forwarded: for=192.0.2.1",
        "DPoP: x", "X-Anything: 1",
    ]

    @Test func onlyAFewFieldsGoToAnotherOrigin() async throws {
        let fields =
            Self.ofTheClient + [
                "Accept: text/a", "Accept-Language: de", "Accept-Encoding: br", "User-Agent: tool/1",
                "Range: bytes=0-9", "Cache-Control: no-cache",
            ]
        let arguments = fields.flatMap { ["-H", $0] }
        let within = try await received(arguments + [redirect(to: "/received/x", mark: "ranges")])
        for field in fields {
            let parts = field.split(separator: ":", maxSplits: 1)
            #expect(
                within.values(String(parts[0])).contains(parts[1].trimmingCharacters(in: .whitespaces)),
                "\(field): \(within)")
        }
        let followed = try await received(arguments + [redirect(to: url("open"), mark: "ranges")])
        let names = Set(followed.lines.map { $0.prefix { $0 != ":" }.lowercased() })
        #expect(
            names == [
                "host", "accept", "accept-language", "accept-encoding", "user-agent", "range", "cache-control", "via",
            ], "\(followed)")
        // A part of the version that the client has of the first place isn't one of the other's.
        let part = try await received(["-r", "0-9", "-H", "If-Range: \"a\"", redirect(to: url("open"))])
        #expect(part.values("Range") == [] && part.values("If-Range") == [], "\(part)")
    }

    /// Back to the first origin, after another: the client's dropped fields are not restored.
    @Test func theWayBackIsAbroadToo() async throws {
        let back = RuleBed.answer(
            "x", "HTTP/1.1 302 F\r\nLocation: \(url("first", "/received/back"))\r\nContent-Length: 0\r\n\r\n")
        let arguments = Self.ofTheClient.flatMap { ["-H", $0] }
        let direct = try await received([url("first", "/received/back")])
        #expect(direct.values("X-First") == ["geheim"], "\(direct)")
        let followed = try await received(arguments + [redirect(to: url("second", back))])
        #expect(followed.target == "/received/back" && followed.values("X-First") == [], "\(followed)")
        #expect(
            followed.values("Cookie") == [] && followed.values("Authorization") == []
                && followed.values("X-Api-Key") == [], "\(followed)")
        // Redirects within the origin keep the secret.
        let within = try await received([redirect(to: "/received/back")])
        #expect(within.values("X-First") == ["geheim"], "\(within)")
    }

    @Test func aBodyGoesWhereItIsMeantToGo() async throws {
        let data = ["-d", "a=b"]
        for status in [307, 308] {
            let followed = try await received(data + [redirect(to: url("open"), status: status)])
            #expect(
                followed.method == "POST" && followed.body == "a=b" && followed.values("Content-Type").count == 1,
                "\(followed)")
        }
        // A POST becomes a question, which is followed.
        for status in [301, 302, 303] {
            let followed = try await received(data + [redirect(to: url("open"), status: status)])
            #expect(
                followed.method == "GET" && followed.length == 0 && followed.values("Content-Type") == [], "\(followed)"
            )
        }
        // Anything else that does something is the client's to send.
        for (method, status) in [("PUT", 302), ("DELETE", 301), ("PATCH", 302)] {
            let run = try await curl(["-i", "-X", method] + data + [redirect(to: url("open"), status: status)])
            #expect(isPassed(run, status), "\(run)")
        }
        let deletion = try await curl(["-i", "-X", "DELETE", redirect(to: url("open"), status: 302)])
        #expect(isPassed(deletion), "\(deletion)")
        let unnamed = try await curl(["-i"] + data + [redirect(to: url("unnamed"), status: 307)])
        #expect(isPassed(unnamed, 307), "\(unnamed)")
        // Back to the first one, where another wants it.
        let back = RuleBed.answer("x", "HTTP/1.1 307 F\r\nLocation: \(url("first"))\r\nContent-Length: 0\r\n\r\n")
        let run = try await curl(["-i"] + data + [redirect(to: url("open", back), status: 307)])
        #expect(
            run.output.hasPrefix("HTTP/1.1 307 ") && run.output.contains("\r\nLocation: \(url("first"))\r\n"), "\(run)")
    }

    // MARK: Who hears of it

    @Test func hopsAreTold() async throws {
        let mark = UUID().uuidString
        let held = url("open", "/hold/\(mark)?token=geheim")
        let client = try await shared.bed.start(
            ["curl", "-sS", redirect(to: held, mark: mark)], environment: shared.proxy.clientEnvironment)
        _ = try await shared.origin!.events.first("held") { $0["name"] == mark }
        let tasks = TaskControl(bed: shared.bed, proxy: shared.proxy)
        let task = try #require(try await tasks.list().first { $0.path.contains(mark) })
        let shown = try await shared.bed.run(
            [
                ProxyProcess.executable, "tasks", "show", "\(task.id)", "--config",
                shared.bed.path("proxy/pinproxy.yaml"),
            ],
            environment: ProxyProcess.environment(in: shared.bed))
        let led = url("open", "/hold/\(mark)?***")
        #expect(shown.output.contains("followed: 302 to \(led)\n") && !shown.output.contains("geheim"), "\(shown)")
        _ = try await curl([url("open", "/release/\(mark)")])
        #expect(try await client.ending() == .exited(0))
        let line = try await shared.proxy.events.first("exchange") {
            $0["path"]?.contains(mark) == true && $0["host"] == "first.test"
        }
        #expect(line["location"] == led, "\(line)")
        #expect(line["hops"]?.contains(led) == true && line["hops"]?.contains("302") == true, "\(line)")
    }
}

private enum FollowedOriginBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let names = [
            "first", "second", "a.wild", "unnamed", "schemes", "upgraded", "authorized", "answering", "certified",
            "open",
        ].map { $0 + ".test" }
        let identity = try TestRoots().intermediate.issue(TestRoots.template(["client"]))
        let chain = ServedChain(identity)
        let pins = """
            hosts:
              - match: first.test
                session:
                  redirects: follow
                  follow_to: [second.test, "*.wild.test", authorized.test, answering.test, certified.test, open.test]
                request: {set_headers: {X-First: {file: key}}}
              - {match: schemes.test, session: {redirects: follow}}
              - {match: upgraded.test, session: {redirects: follow, follow_to: [first.test]}}
              - match: second.test
                request:
                  set_headers: {X-Key: {file: key}, X-Literal: open, Cookie: rule=1}
                  headers: {X-Absent: {file: key}, X-Fleet: 1}
                rules:
                  - {path: /written/**, request: {parameters: {a: b}}}
              - {match: authorized.test, request: {authorization: {user: ann, password_file: key}}}
              - {match: answering.test, session: {credentials: {user: ann, password_file: key}}}
              - {match: certified.test, session: {redirects: follow}, client_certificate: {certificate: client.pem, \
            private_key: client.key}}

            """
        return try await OriginBed.prepare(
            bed, pins: pins, hosts: Dictionary(uniqueKeysWithValues: names.map { ($0, "127.0.0.1") }),
            files: ["proxy/key": "geheim\n", "proxy/client.pem": chain.pem, "proxy/client.key": chain.keyPEM])
    }
}
