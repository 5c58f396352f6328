import Foundation
import PinproxyTestAuthority
import Testing

/// `on_refusal: page`: a person in a browser reads the reason, and programs are misled no further than necessary.
@Suite(.sharedBed(RefusalPageBed.prepare), .timeLimit(.minutes(5)))
struct RefusalPageTests {
    let shared: SharedBed
    var bed: TestBed { shared.bed }

    init() throws {
        shared = try sharedBed()
    }

    private func curl(_ host: String, _ arguments: String...) async throws -> Run {
        try await bed.curl(
            via: shared.proxy, ["-i"] + arguments + ["https://\(host):\(shared.originPort)/received/secret"])
    }

    @Test(arguments: [("page.test", "Certificate pinning failure for page.test"), ("stranger.test", "stranger.test")])
    func theReasonIsToldInsideTLS(host: String, words: String) async throws {
        let run = try await curl(host, "-H", "Accept: text/html")
        #expect(run.succeeded && run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains(words), "\(run)")
        let head = run.output.components(separatedBy: "\r\n\r\n")[0].lowercased()
        let wanted = [
            "cache-control: no-store", "connection: close", "content-type: text/html; charset=utf-8",
            "proxy-status: pinproxy; error=tls_certificate_error",
        ]
        for field in wanted {
            #expect(head.contains(field), "\(field): \(run)")
        }
        #expect(head.contains("; sandbox") && head.contains("frame-ancestors 'none'"), "\(run)")
        let unwanted = ["set-cookie", "strict-transport-security", "alt-svc", "access-control-allow-origin", "via:"]
        for field in unwanted { #expect(!head.contains(field), "\(run)") }
        let event = try await shared.proxy.events.first("refusal.page") { $0["host"] == host }
        #expect(event["entry"] == host && event["level"] == "warning", "\(event)")
        #expect(event["client"]?.hasPrefix("127.0.0.1:") == true, "\(event)")
    }

    @Test func aProgramGetsWhatItCanRead() async throws {
        let run = try await bed.curl(
            via: shared.proxy, ["https://page.test:\(shared.originPort)/", "--fail-with-body"])
        #expect(run.ending == .exited(22) && run.output.contains("\"presented_pins\""), "\(run)")
    }

    /// Of neither requests nor bodies.
    @Test func nothingIsPassedOn() async throws {
        let before = shared.origin?.events.all("request").count
        let body = try bed.file("body-\(UUID())", String(repeating: "x", count: 3_000_000))
        let run = try await curl(
            "page.test", "-X", "PUT", "-T", body, "-H", "Cookie: secret=1", "-H", "Authorization: Basic c2VjcmV0")
        #expect(run.output.contains("HTTP/1.1 502 ") && !run.output.contains("100 Continue"), "\(run)")
        #expect(shared.origin?.events.all("request").count == before)
    }

    /// One request, one answer, and the end.
    @Test func theConnectionEnds() async throws {
        let authority = "page.test:\(shared.originPort)"
        let request = "GET / HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
        let run = try await bed.secureExchange(via: shared.proxy, to: authority, request + request)
        #expect(run.output.components(separatedBy: "HTTP/1.1 502 ").count == 2, "\(run)")
    }

    /// The leaf is for the one host in CONNECT, and so are the responses.
    @Test func noOtherHostIsSpokenFor() async throws {
        let authority = "page.test:\(shared.originPort)"
        let run = try await bed.secureExchange(
            via: shared.proxy, to: authority, "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(run.output.contains("HTTP/1.1 421 ") && !run.output.contains("pinning failure"), "\(run)")
        let names = try await bed.run([
            "/bin/sh", "-c",
            """
            openssl s_client -proxy \(shared.proxy.address):\(shared.proxy.port) -connect \(authority) -servername \
            page.test \
            -CAfile \(shared.proxy.authority) -verify_return_error </dev/null 2>/dev/null \
            | openssl x509 -noout -ext subjectAltName
            """,
        ])
        #expect(names.output.hasSuffix("DNS:page.test"), "\(names)")
    }

    /// Hosts without `on_refusal: page`, unreachable hosts and denied ones get the usual answer to CONNECT.
    @Test func otherRefusalsAreAnswersToCONNECT() async throws {
        #expect(try await shared.proxy.connect(to: "plain.test:\(shared.originPort)").status == 502)
        let unreachable = try await shared.proxy.connect(to: "page.test:1")
        #expect(unreachable.status == 502 && unreachable.reason.contains("Cannot connect"), "\(unreachable)")
        #expect(try await shared.proxy.connect(to: "nowhere.onion:443").status == 502)
    }

    @Test func execTellsOnce() async throws {
        let run = try await bed.exec("curl", "-s", "https://page.test:\(shared.originPort)/")
        #expect(run.succeeded && run.told.count == 1, "\(run)")
        let line = "pinproxy: page.test:\(shared.originPort): Certificate pinning failure for page.test"
        #expect(run.told.first?.hasPrefix(line) == true, "\(run)")
        #expect(run.told.first?.contains("times") == false, "\(run)")
    }

    /// A client that doesn't trust the authority just sees a failed handshake.
    @Test func whoDoesNotTrustTheAuthorityReadsNothing() async throws {
        let run = try await curl("page.test", "--cacert", "/etc/ssl/certs/ca-certificates.crt")
        #expect(run.ending == .exited(60) && run.output.isEmpty, "\(run)")
    }

    private struct Seen: Decodable {
        let error: String
        let status: Int
        let security: String
        let fields: [String: String]
        let title: String
        let text: String
        let origin: String
        let worker: String
        let cookies: [String]
    }

    /// In Chromium, which trusts the authority through its own store.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/certutil")))
    func aPersonReadsItInABrowser() async throws {
        let home = bed.path("browser")
        let installed = try await bed.run(
            [ProxyProcess.executable, "ca", "install", "--nss", "--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed).merging(["HOME": home]) { $1 })
        #expect(installed.succeeded, "\(installed)")
        let url = "https://page.test:\(shared.originPort)/account"
        let run = try await bed.run(
            [
                "/usr/bin/python3", PythonPeer.path("browser.py"), url, "--proxy",
                "\(shared.proxy.address):\(shared.proxy.port)",
                "--profile", bed.path("b"),
            ], environment: ["HOME": home])
        let seen = try JSONDecoder().decode(Seen.self, from: Data(run.output.utf8))
        #expect(seen.error.isEmpty && seen.status == 502 && seen.security == "secure", "\(run)")
        #expect(seen.title == "Certificate pinning failure for page.test" && seen.text.contains("sha256/"), "\(run)")
        #expect(seen.text.contains("This answer comes from pinproxy on the way, not from the site page.test"), "\(run)")
        // The page doesn't belong to the site, and can't use the site's storage or service workers.
        #expect(seen.origin == "null" && seen.worker == "SecurityError" && seen.cookies == [], "\(run)")
        #expect(seen.fields["cache-control"] == "no-store" && seen.fields["strict-transport-security"] == nil, "\(run)")
    }

    // MARK: The configuration

    private func check(_ entry: String) async throws -> Run {
        let folder = "check-\(UUID())"
        try ProxyProcess.write(to: bed, folder: folder, pins: "hosts:\n  - match: a.test\n    \(entry)\n", trust: nil)
        return try await bed.run([ProxyProcess.executable, "check", "--config", bed.path("\(folder)/pinproxy.yaml")])
    }

    @Test(arguments: [
        (
            "action: verify-tunnel\n    on_refusal: page",
            "pins.yaml:4:17: error: on_refusal: page needs action: intercept"
        ),
        ("action: tunnel\n    on_refusal: page", "pins.yaml:4:17: error: on_refusal: page needs action: intercept"),
        ("on_refusal: pages", "pins.yaml:3:17: error: on_refusal: "),
        ("action: deny\n    on_refusal: page", "on_refusal has no effect: the host is denied"),
    ])
    func whereItCannotBe(entry: String, words: String) async throws {
        let run = try await check(entry)
        #expect(run.errors.contains(words), "\(run)")
        #expect(run.succeeded == words.contains("no effect"), "\(run)")
    }

    @Test(arguments: ["on_refusal: page", "on_refusal: status", "action: tunnel\n    on_refusal: status"])
    func whereItCanBe(entry: String) async throws {
        let run = try await check(entry)
        #expect(run.succeeded && run.errors.isEmpty, "\(run)")
    }

    @Test func explainAndLintSaySo() async throws {
        func command(_ arguments: String...) async throws -> Run {
            try await bed.run(
                [ProxyProcess.executable] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
        }
        let explained = try await command("explain", "page.test:\(shared.originPort)")
        #expect(explained.output.contains("refusal   page: where the server is refused"), "\(explained)")
        let json = try await command("explain", "--json", "page.test:\(shared.originPort)")
        #expect(json.output.contains("\"on_refusal\" : \"page\""), "\(json)")
        let lint = try await command("lint", "--offline")
        #expect(
            lint.output.contains("note: page.test: on_refusal is page") && lint.output.contains("[refusal-page]"),
            "\(lint)")
    }
}

enum RefusalPageBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let pins = """
            hosts:
              - match: page.test
                on_refusal: page
                pinning: public-key
                pins: [\(String.wrongPin), sha256/BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]
              - match: stranger.test
                on_refusal: page
              - match: plain.test
                pinning: public-key
                pins: [\(String.wrongPin)]

            """
        let leaf = try roots.leaf("page.test", "plain.test")
        let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: roots.write(to: bed),
            hosts: ["page.test": "127.0.0.1", "plain.test": "127.0.0.1", "stranger.test": "127.0.0.1"],
            sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"]])
        return SharedBed(bed: bed, proxy: proxy, originPort: origin.port, origin: origin)
    }
}
