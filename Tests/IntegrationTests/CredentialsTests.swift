import Foundation
import PinproxyTestAuthority
import Testing

/// `session.credentials`: clients without a password get resources that need one.
@Suite(.sharedBed(CredentialsBed.prepare), .timeLimit(.minutes(5)))
struct CredentialsTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    static let password = "secret"
    static let digest = "digest.test"
    static let nginx = "basic.test"
    static let lighttpd = "lighttpd.test"

    /// curl through the proxy. It prints the status after the body.
    private func curl(_ arguments: String...) async throws -> Run {
        try await shared.bed.curl(via: shared.proxy, ["-w", "\n%{http_code}"] + arguments)
    }

    private func url(_ host: String, _ path: String) -> String {
        switch host {
        case Self.digest: "https://\(host):\(shared.originPort)\(path)"
        default: "https://\(host):\(shared.ports[host]!)\(path)"
        }
    }

    /// The authentication schemes of the requests for a path so far, at the Python origin.
    private func schemes(_ path: String) async throws -> [String] {
        // The origin logs in order: once this request shows up, all earlier ones have.
        let mark = "/basic/\(UUID().uuidString)"
        _ = try await curl("https://stranger.test:\(shared.originPort)\(mark)")
        _ = try await shared.origin!.events.first("asked") { $0["path"] == mark }
        return shared.origin!.events.all("asked").filter { $0["path"] == path }.map { $0["scheme"] ?? "" }
    }

    @Test func nginxGetsBasic() async throws {
        for _ in 0..<2 {
            let run = try await curl(url(Self.nginx, "/private/hello"))
            #expect(run.output == "hello\n\n200", "\(run)")
        }
        // The second time preemptively.
        let log = try String(contentsOfFile: shared.bed.path("nginx/private.log"), encoding: .utf8)
        #expect(log.split(separator: "\n") == ["401 -", "200 ann", "200 ann"])
    }

    @Test(arguments: ["/md5/hello", "/sha256/hello", "/both/hello", "/userhash/hello"])
    func lighttpdGetsDigest(_ path: String) async throws {
        let again = url(Self.lighttpd, path)
        let run = try await curl(again, again)
        #expect(run.output == "hello\n\n200hello\n\n200", "\(run)")
        let head = try await curl("-I", again)
        #expect(head.output.hasSuffix("\n200"), "\(head)")
    }

    @Test(arguments: ["/counted/", "/session/", "/next/", "/sess-next/", "/once/"])
    func digestIsAnsweredAndKept(_ folder: String) async throws {
        for index in 1...3 {
            // A separate name, unknown to other tests, has no nonces yet.
            let host = folder.split(separator: "/")[0] + ".test"
            let run = try await curl("https://\(host):\(shared.originPort)\(folder)a?\(index)")
            #expect(run.output.hasSuffix("\n200") && run.output.contains("\"path\": \"\(folder)a?\(index)\""), "\(run)")
        }
        // Only a refusal reveals that a nonce is used up.
        let third = try await schemes("\(folder)a?3")
        #expect(third == (folder == "/once/" ? ["Digest", "Digest"] : ["Digest"]), "\(third)")
    }

    /// Many requests at once over both workers: no nonce count is used twice, and all succeed.
    @Test(arguments: ["/counted/many/", "/session/many/"]) func countsAreRightUnderConcurrency(
        _ folder: String
    ) async throws {
        let run = try await shared.bed.curl(
            via: shared.proxy,
            [
                "-Z", "--parallel-max", "16", "-o", "/dev/null", "-w", "%{http_code}\n",
                url(Self.digest, "\(folder)[1-160]"),
            ])
        #expect(run.output.split(separator: "\n") == Array(repeating: "200", count: 160), "\(run)")
        #expect(shared.origin!.events.all("replayed").isEmpty)
    }

    @Test(arguments: [0, 1, 100_000, 1_000_000]) func aBodyIsSentAgain(_ length: Int) async throws {
        let body = String(repeating: "b", count: length)
        let file = try shared.bed.file("body-\(length)", body)
        let run = try await curl("--data-binary", "@" + file, url(Self.digest, "/once/body\(length)"))
        #expect(
            run.output.hasSuffix("\n200") && run.output.contains("\"body\": \"\(body)\""),
            "\(run.description.prefix(500))")
    }

    /// A body too long to keep is not sent again: the client gets the origin's 401.
    @Test func aBodyThatIsNotKeptIsNotSentAgain() async throws {
        let file = try shared.bed.file("long", String(repeating: "b", count: 3 << 20))
        // A separate name: with another test's nonce the first request would succeed.
        let run = try await curl("-i", "-T", file, "https://long.test:\(shared.originPort)/once/long")
        #expect(
            run.output.contains("HTTP/1.1 401 ") && run.output.hasSuffix("who are you?\n401"),
            "\(run.description.suffix(800))")
        #expect(run.output.lowercased().contains("www-authenticate: digest"))
        #expect(try await schemes("/once/long").count == 1)
    }

    @Test func aWrongPasswordIsTriedOnce() async throws {
        let run = try await curl("-i", "https://wrong.test:\(shared.originPort)/once/wrong")
        #expect(run.output.contains("HTTP/1.1 401 ") && run.output.contains("who are you?"), "\(run)")
        #expect(run.output.lowercased().contains("www-authenticate: digest"))
        #expect(try await schemes("/once/wrong") == ["", "Digest"])
        let basic = try await curl("-i", "https://wrong.test:\(shared.originPort)/basic/wrong")
        #expect(basic.output.hasSuffix("\n401"), "\(basic)")
        #expect(try await schemes("/basic/wrong") == ["", "Basic"])
    }

    /// Many clients ask, but the account must not get locked. Writing the file again allows a new try.
    @Test(arguments: ["/basic/", "/once/"]) func aRefusedPasswordIsSentOnce(_ folder: String) async throws {
        try await withTestBed { bed in
            let origin = try await PythonPeer(in: bed, script: "digest_origin.py")
            try bed.file("proxy/secret", "guess\n")
            let pins =
                """
                hosts: [{match: origin.test, session: {credentials: {user: ann, password_file: secret, allow_http: \
                true}}}]\n
                """
            let proxy = try await ProxyProcess(in: bed, pins: pins, trust: nil, hosts: ["origin.test": "127.0.0.1"])
            func get(_ path: String) async throws -> Run {
                try await bed.curl(via: proxy, ["-i", "http://origin.test:\(origin.port)\(path)"])
            }
            let scheme = folder == "/basic/" ? "Basic" : "Digest"
            func answers() -> Int { origin.events.all("asked").count { $0["scheme"] == scheme } }
            for path in ["a", "b", "a", "deep/c"] {
                let run = try await get(folder + path)
                // The client gets the origin's challenge each time.
                #expect(
                    run.output.hasPrefix("HTTP/1.1 401 ")
                        && run.output.lowercased().contains("www-authenticate: \(scheme.lowercased())"), "\(run)")
            }
            #expect(answers() == 1)
            let line = try await proxy.events.first("credentials.refused")
            #expect(
                line["realm"] == "peers" && line["user"] == "ann" && line["entry"] == "origin.test"
                    && line["host"] == "origin.test", "\(line)")
            #expect(proxy.events.lines.lines.allSatisfy { !$0.contains("guess") })
            // A reload alone allows no new try. A rewritten file does, even with the same contents.
            #expect(try await proxy.reload().name == "config.reload")
            _ = try await get(folder + "d")
            #expect(answers() == 1)
            try bed.file("proxy/secret", "guess\n")
            _ = try await proxy.reload()
            _ = try await get(folder + "e")
            #expect(answers() == 2)
            try bed.file("proxy/secret", "secret\n")
            _ = try await proxy.reload()
            #expect(try await get(folder + "f").output.hasPrefix("HTTP/1.1 200 "))
            // The server's password has changed meanwhile.
            for _ in 0..<3 { #expect(try await get(folder + "other/g").output.hasPrefix("HTTP/1.1 401 ")) }
            #expect(
                origin.events.all("asked").filter { $0["path"] == folder + "other/g" && $0["scheme"] != "" }.count <= 2)
            #expect(proxy.events.all("credentials.refused").count == 3)
        }
    }

    @Test func aServerThatIsNeverContentIsLeft() async throws {
        let run = try await curl("-i", url(Self.digest, "/stale/x"))
        #expect(run.output.hasSuffix("\n401"), "\(run)")
        let asked = try await schemes("/stale/x")
        // The first may have used another test's nonce.
        #expect(asked.count == 3 && asked.dropFirst() == ["Digest", "Digest"], "\(asked)")
    }

    @Test func aClientsOwnCredentialsAreItsOwn() async throws {
        let right = try await curl("--digest", "-u", "ann:secret", url(Self.digest, "/once/own"))
        #expect(right.output.hasSuffix("\n200"), "\(right)")
        let wrong = try await curl("-u", "eve:guess", url(Self.digest, "/basic/own"))
        #expect(wrong.output.hasSuffix("\n401"), "\(wrong)")
        #expect(try await schemes("/basic/own") == ["Basic"])
    }

    @Test func overHTTPOnlyWhereItIsAllowed() async throws {
        let port = shared.secondOriginPort
        let refused = try await curl("-i", "http://\(Self.digest):\(port)/basic/http")
        #expect(refused.output.hasSuffix("\n401"), "\(refused)")
        let allowed = try await curl("http://plain.test:\(port)/basic/http")
        #expect(allowed.output.hasSuffix("\n200"), "\(allowed)")
        let seen = shared.plainOrigin!.events.all("asked").map { $0["scheme"] ?? "" }
        #expect(seen == ["", "", "Basic"])
        // The log warns about it.
        let warning = try await shared.proxy.events.first("config.warning") {
            $0["cause"]?.contains("allow_http") == true
        }
        #expect(warning["cause"]?.contains("insecure") == true)
    }

    /// After a redirect to another host, its challenge isn't answered with the first host's credentials.
    @Test func credentialsStayWithTheirHost() async throws {
        let answers = shared.ports[CredentialsBed.answers]!
        let location = "https://stranger.test:\(shared.originPort)/once/stranger"
        let path = RuleBed.answer("x", "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n")
        let run = try await curl("https://\(CredentialsBed.answers):\(answers)\(path)")
        #expect(run.output == "who are you?\n401", "\(run)")
        #expect(try await schemes("/once/stranger") == [""])
    }

    @Test(arguments: [
        // curl reads 100 KiB of one line.
        (0..<2000).map { "S\($0) realm=a" }.joined(separator: ", "), "Digest realm=\"unclosed, nonce=\"a\", qop=auth",
        "Basic realm=\"\(String(repeating: "r", count: 90_000))\"unfinished",
        "Digest realm=\"\(String(repeating: "r", count: 90_000))\", nonce=a, qop=auth",
        "Digest realm=a, nonce=b, realm=c, qop=auth", "Digest", "Digest ,,,,", "=", "\"",
        "Digest nonce=\"a\", qop=auth-int, realm=b",
        "Negotiate", "Bearer realm=x", String(repeating: "Digest realm=a ", count: 5000),
    ])
    func hostileChallengesArePassedOn(_ challenge: String) async throws {
        let port = shared.ports[CredentialsBed.answers]!
        let answer = "HTTP/1.1 401 No\r\nWWW-Authenticate: \(challenge)\r\nContent-Length: 4\r\n\r\nwho?"
        // The origin says what it is asked to, whatever the request carries.
        let file = try shared.bed.file("hostile-\(UUID().uuidString)", answer)
        let run = try await curl("--data-binary", "@" + file, "https://\(CredentialsBed.answers):\(port)/repeat")
        #expect(run.output == "who?\n401", "\(run.description.prefix(500))")
    }

    @Test func nothingOfItIsInTheLog() async throws {
        _ = try await curl(
            url(Self.digest, "/once/logged"), "https://logged.test:\(shared.originPort)/once/wrong-logged")
        _ = try await shared.proxy.events.first("exchange") { $0["path"] == "/once/wrong-logged" }
        for line in shared.proxy.events.lines.lines {
            for secret in ["YW5uOnNlY3JldA", "response=", "cnonce", "geheim"] {
                #expect(!line.contains(secret), "\(line)")
            }
        }
    }
}

private enum CredentialsBed {
    static let answers = "answers.test"

    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let folders = ["counted.test", "session.test", "next.test", "sess-next.test", "once.test", "long.test"]
        let names =
            folders + [
                CredentialsTests.digest, "wrong.test", "logged.test", "stranger.test", answers, CredentialsTests.nginx,
                CredentialsTests.lighttpd,
            ]
        let chain = ServedChain(try roots.intermediate.issue(TestRoots.template(names)))
        let digest = try await PythonPeer(
            in: bed, script: "digest_origin.py",
            ["--certificate", try bed.file("digest.pem", chain.pem), "--key", try bed.file("digest.key", chain.keyPEM)])
        let plain = try await PythonPeer(in: bed, script: "digest_origin.py")
        let origin = try await PythonPeer.origin(in: bed, chain: chain)
        let lighttpd = try await LighttpdOrigin(in: bed, chain: chain)
        let users = try bed.file("nginx/users", "ann:{PLAIN}secret\n", mode: 0o644)
        let nginx = try await NginxOrigin(
            in: bed, sites: [.init(name: CredentialsTests.nginx, chain: chain)],
            locations: """
                location /private/ {
                    auth_basic "hall"; auth_basic_user_file \(users); alias \(bed.path("nginx/documents"))/;
                    access_log \(bed.path("nginx/private.log")) brief;
                }
                """, options: "log_format brief '$status $remote_user';")
        for (name, text) in ["secret": "secret\n", "wrong": "geheim\n"] { try bed.file("proxy/\(name)", text) }
        func entry(_ host: String, _ file: String = "secret", _ more: String = "", _ session: String = "") -> String {
            "  - {match: \(host), session: {credentials: {user: ann, password_file: \(file)\(more)}\(session)}}\n"
        }
        let proxy = try await ProxyProcess(
            in: bed,
            pins: "hosts:\n" + folders.map { entry($0) }.joined() + entry(CredentialsTests.digest)
                + entry(CredentialsTests.nginx)
                // lighttpd sends two algorithms as one field with a line end in it, over HTTP/2 as well.
                + entry(CredentialsTests.lighttpd, "secret", "", ", http: [http/1.1]")
                + entry("wrong.test", "wrong") + entry("logged.test", "wrong")
                + entry("plain.test", "secret", ", allow_http: true")
                + entry(answers, "secret", "", ", redirects: follow, follow_to: [stranger.test]"),
            trust: roots.write(to: bed),
            hosts: Dictionary(uniqueKeysWithValues: (names + ["plain.test"]).map { ($0, "127.0.0.1") }))
        var shared = SharedBed(
            bed: bed, proxy: proxy, originPort: digest.port, secondOriginPort: plain.port, origin: digest,
            plainOrigin: plain)
        shared.ports = [
            CredentialsTests.nginx: nginx.port, CredentialsTests.lighttpd: lighttpd.port, answers: origin.port,
        ]
        return shared
    }
}
