import Foundation
import PinproxyTestAuthority
import Testing

/// `session.base_url`: plain requests to one name go below a URL of another.
@Suite(.sharedBed(BaseURLBed.prepare), .timeLimit(.minutes(5)))
struct BaseURLTests {
    let shared: SharedBed

    init() throws { shared = try sharedBed() }

    @Test(arguments: [
        ("/users?a=b", "/received/v2/users?a=b"), ("/", "/received/v2/"), ("", "/received/v2/"),
        ("?a=b", "/received/v2/?a=b"),
        ("/a%2fb;c", "/received/v2/a%2fb;c"),
    ])
    func requestsGoBelowTheBase(_ path: String, _ expected: String) async throws {
        let run = try await shared.curl("--path-as-is", "http://api.pinproxy.test" + path)
        let received = try ReceivedRequest(run)
        #expect(received.target == expected)
        #expect(received.values("Host") == [shared.authority])
        // The rules of the base's host apply, for the path that is requested there.
        #expect(received.values("X-Rule") == ["of the base"])
        #expect(received.values("X-Alias") == [])
    }

    @Test(arguments: ["/../elsewhere", "/%2e%2e/elsewhere", "/a/..%5c../elsewhere", "//../elsewhere"])
    func pathsThatLeadAboveTheBaseAreRefused(_ path: String) async throws {
        let run = try await shared.curl("-i", "--path-as-is", "http://api.pinproxy.test" + path)
        #expect(run.output.hasPrefix("HTTP/1.1 400 Path above the base URL at \(OriginBed.name)\r\n"), "\(run)")
        #expect(
            try ReceivedRequest(try await shared.curl("--path-as-is", "http://api.pinproxy.test/a/../b")).target
                .hasSuffix("/a/../b"))
    }

    @Test func bodiesAndMethodsGoWithThem() async throws {
        let body = String(repeating: "0123456789", count: 20_000)
        try shared.bed.file("upload", body)
        let run = try await shared.curl(
            "-H", "Expect: 100-continue", "--data-binary", "@" + shared.bed.path("upload"),
            "http://api.pinproxy.test/upload",
            "-o", shared.bed.path("first"), "http://api.pinproxy.test/second")
        let first = try JSONDecoder().decode(
            ReceivedRequest.self, from: Data(contentsOf: URL(filePath: shared.bed.path("first"))))
        for received in [first, try ReceivedRequest(run)] {
            #expect(received.method == "POST" && received.length == body.utf8.count, "\(received)")
        }
        #expect(first.target == "/received/v2/upload")
    }

    /// OPTIONS for the whole server refers to the base.
    @Test func theServerIsTheBase() async throws {
        let run = try await shared.curl(
            "-X", "OPTIONS", "--request-target", "http://api.pinproxy.test", "http://api.pinproxy.test/")
        #expect(try ReceivedRequest(run).target == "/received/v2/")
    }

    /// Responses of the base's host are not rewritten.
    @Test func aLocationPassesAsItIs() async throws {
        let answer = "HTTP/1.1 302 Found\r\nLocation: /received/elsewhere\r\nContent-Length: 0\r\n\r\n"
        let run = try await shared.curl("-i", "http://answers.pinproxy.test" + RuleBed.answer("x", answer))
        #expect(
            run.output.hasPrefix("HTTP/1.1 302 ") && run.output.contains("Location: /received/elsewhere\r\n"), "\(run)")
    }

    @Test func theLogNamesWhereItWent() async throws {
        _ = try await shared.curl("http://api.pinproxy.test/logged?secret")
        let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/received/v2/logged" }
        #expect(line["host"] == OriginBed.name)
        #expect(line["port"] == "\(shared.originPort)")
        #expect(line["entry"] == OriginBed.name)
    }

    @Test func thePinsOfTheBaseHold() async throws {
        let run = try await shared.curl("-i", "http://pinned.pinproxy.test/x")
        #expect(run.output.hasPrefix("HTTP/1.1 502 ") && run.output.contains("inning failure"), "\(run)")
    }

    @Test func aPathRuleHasItsOwnBase() async throws {
        #expect(
            try ReceivedRequest(try await shared.curl("http://rules.pinproxy.test/new/x")).target
                == "/received/new/new/x")
        #expect(try ReceivedRequest(try await shared.curl("http://rules.pinproxy.test/x")).target == "/received/old/x")
        let ambiguous = try await shared.curl("-i", "--path-as-is", "http://rules.pinproxy.test/new/../x")
        #expect(ambiguous.output.hasPrefix("HTTP/1.1 400 "), "\(ambiguous)")
    }

    /// From `http://` to `http://`, with rules that rewrite the request again on the way.
    @Test func rulesOfAPlainBaseShapeTheRequest() async throws {
        let run = try await shared.curl("http://plain.pinproxy.test/x?a=b")
        let received = try ReceivedRequest(run)
        #expect(received.target == "/received/plain/x?a=b&c=d", "\(received)")
        #expect(received.values("Host") == ["plain-origin.test:\(shared.secondOriginPort)"])
    }

    /// Two names of the same base share its connections, and one client gets both.
    @Test func oneConnectionOfAClientServesBaseAndOthers() async throws {
        let run = try await shared.curl(
            "http://api.pinproxy.test/1", shared.plainURL + "/received/2", "http://api.pinproxy.test/3", "-w",
            "%{num_connects}\n")
        #expect(
            run.output.contains("/received/v2/1") && run.output.contains("\"/received/2\"")
                && run.output.contains("/received/v2/3"), "\(run)")
    }
}

private enum BaseURLBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let leaf = try roots.intermediate.issue(TestRoots.template([OriginBed.name, "pinned-origin.test"]))
        let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
        let plain = try await PythonPeer.origin(in: bed, chain: nil)
        let base = "https://\(OriginBed.name):\(origin.port)"
        let proxy = try await ProxyProcess(
            in: bed,
            pins: """
                hosts:
                  - match: api.pinproxy.test
                    session: {base_url: "\(base)/received/v2"}
                    request: {headers: {X-Alias: "1"}}
                  - match: answers.pinproxy.test
                    session: {base_url: "\(base)/"}
                  - match: pinned.pinproxy.test
                    session: {base_url: "https://pinned-origin.test:\(origin.port)/received"}
                  - match: rules.pinproxy.test
                    session: {base_url: "\(base)/received/old"}
                    rules: [{path: /new/**, session: {base_url: "\(base)/received/new"}}]
                  - match: plain.pinproxy.test
                    session: {base_url: "http://plain-origin.test:\(plain.port)/received/plain/"}
                  - match: plain-origin.test
                    request: {parameters: {c: d}}
                  - match: pinned-origin.test
                    pinning: public-key
                    pins: [\(String.wrongPin)]
                  - match: \(OriginBed.name)
                    rules: [{path: /received/v2/**, request: {headers: {X-Rule: of the base}}}]

                """, trust: roots.write(to: bed),
            hosts: [OriginBed.name: "127.0.0.1", "pinned-origin.test": "127.0.0.1", "plain-origin.test": "127.0.0.1"])
        return SharedBed(
            bed: bed, proxy: proxy, originPort: origin.port, secondOriginPort: plain.port, origin: origin,
            plainOrigin: plain)
    }
}
