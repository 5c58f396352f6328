import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy exec` explains the refusals of its command, and no others.
@Suite(.sharedBed(ExecRefusalBed.prepare), .timeLimit(.minutes(5)))
struct ExecRefusalTests {
    let shared: SharedBed
    let url: String
    let wrongURL: String

    init() throws {
        shared = try sharedBed()
        url = "https://right.test:\(shared.originPort)/large/3"
        wrongURL = "https://wrong.test:\(shared.originPort)/large/3"
    }

    private var refusal: String {
        "pinproxy: wrong.test:\(shared.originPort): Certificate pinning failure for wrong.test"
    }

    @Test(arguments: [
        ["curl", "-sS"], ["wget", "-qO-", "--tries=1"], [PythonPeer.python, PythonPeer.path("fetch.py"), "urllib"],
        [PythonPeer.pythonWithPackages, PythonPeer.path("fetch.py"), "requests"], ["git", "ls-remote"],
    ])
    func whyAProgramWasRefused(program: [String]) async throws {
        let wrong = try await shared.bed.run(
            shared.bed.execArguments([], program + [wrongURL]), environment: ProxyProcess.environment(in: shared.bed))
        #expect(!wrong.succeeded, "\(wrong)")
        #expect(wrong.told.count == 1, "\(wrong)")
        #expect(wrong.told.first?.hasPrefix(refusal) == true, "\(wrong)")
        let advice =
            "pinproxy explain --config \(shared.bed.path("proxy/pinproxy.yaml")) wrong.test:\(shared.originPort)"
        #expect(wrong.told.first?.hasSuffix(". Details: run \(advice)") == true, "\(wrong)")
    }

    /// Rules depend on the path, so the advice names it.
    @Test func theAdviceNamesTheRequestThatRulesRefused() async throws {
        let run = try await shared.bed.exec(
            "curl", "-s", "-o", "/dev/null", "https://rule.test:\(shared.originPort)/large/3?query")
        #expect(run.told.count == 1, "\(run)")
        #expect(
            run.told.first?.hasSuffix(" rule.test:\(shared.originPort) --path /large/3") == true
                && run.told.first?.contains("query") == false, "\(run)")
    }

    /// The host's policy is what `pinproxy explain` shows for it over https://.
    @Test func theAdviceAfterPlainHTTPIsAboutTheHost() async throws {
        let run = try await shared.bed.exec("curl", "-s", "-o", "/dev/null", "http://wrong.test/")
        #expect(run.told.count == 1, "\(run)")
        #expect(
            run.told.first?.contains("Plain HTTP to pinned host") == true
                && run.told.first?.hasSuffix(" wrong.test") == true, "\(run)")
    }

    @Test func nothingIsSaidWhereAllIsRight() async throws {
        let right = try await shared.bed.exec("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url)
        #expect(right.succeeded && right.output == "200" && right.errors.isEmpty, "\(right)")
    }

    /// Refusals of other runs, and of programs without a run, are not reported to this one.
    @Test func onlyTheRunsOwnAreTold() async throws {
        let token = String(repeating: "0", count: 64)
        let proxy = "http://pinproxy-run:\(token)@127.0.0.1:\(shared.proxy.port)"
        let script = "curl -s -x \(proxy) \(wrongURL); curl -sS -o /dev/null \(url)"
        let run = try await shared.bed.exec("sh", "-c", script)
        #expect(run.succeeded && run.errors.isEmpty, "\(run)")
    }

    @Test func aCommandThatGoesRoundTheProxyIsSaid() async throws {
        let run = try await shared.bed.exec(
            "curl", "-sS", "--noproxy", "*", "--resolve", "right.test:1:127.0.0.1", "https://right.test:1/")
        #expect(run.told.count == 1, "\(run)")
        #expect(
            run.told.first?.hasPrefix("pinproxy: curl sent nothing through the proxy as this run") == true, "\(run)")
        #expect(run.ending == .exited(7), "\(run)")
    }

    /// A client that does not trust the authority learns that from its own words only if it has any.
    @Test func aClientThatDoesNotTrustTheAuthorityIsTold() async throws {
        let run = try await shared.bed.exec(
            options: ["--no-trust"], "curl", "-sS", "--cacert", "/etc/ssl/certs/ca-certificates.crt", url)
        #expect(!run.succeeded)
        #expect(
            run.told.first?.contains("right.test:\(shared.originPort): the client's TLS handshake failed") == true,
            "\(run)")
    }

    @Test func aThousandRefusalsAreFewLines() async throws {
        let urls = (0..<1000).map { "url = \"\($0.isMultiple(of: 2) ? wrongURL : "https://denied.test/")\"\n" }.joined()
        let config = try shared.bed.file("urls", urls)
        let end = try await shared.bed.exec("curl", "-s", "-K", config)
        #expect(end.told.count == 2, "\(end)")
        #expect(end.told.allSatisfy { $0.contains(" (500 times). Details: run pinproxy explain ") }, "\(end)")
        let live = try await shared.bed.exec(options: ["--explain-refusals", "live"], "curl", "-s", "-K", config)
        #expect(live.told.count == 4, "\(live)")
        #expect(live.told.suffix(2).allSatisfy { $0.hasSuffix(": refused 500 times in all") }, "\(live)")
    }

    @Test func liveIsWhileTheCommandRuns() async throws {
        let process = try await shared.bed.start(
            shared.bed.execArguments(
                ["--explain-refusals=live"], ["sh", "-c", "curl -s \(wrongURL); exec sleep 1000"]),
            environment: ProxyProcess.environment(in: shared.bed))
        let line = try await process.errors.first(awaiting: "the refusal") {
            $0.hasPrefix("pinproxy: wrong.test") ? $0 : nil
        }
        #expect(line.contains("Certificate pinning failure"))
        process.send(signal: SIGTERM)
        #expect(try await process.ending() == .signalled(SIGTERM))
    }

    @Test func offMeansAPlainURLAndNoWord() async throws {
        let run = try await shared.bed.exec(
            options: ["--explain-refusals=off"], "sh", "-c", "echo $https_proxy; curl -s \(wrongURL)")
        #expect(run.output.hasPrefix(shared.proxy.url) && !run.output.contains("@"), "\(run)")
        #expect(run.errors.isEmpty, "\(run)")
    }

    @Test func aReloadInBetweenChangesNothing() async throws {
        let process = try await shared.bed.start(
            shared.bed.execArguments(
                [], ["sh", "-c", "echo ready; until [ -e reloaded ]; do sleep 0.05; done; curl -s \(wrongURL)"]),
            environment: ProxyProcess.environment(in: shared.bed))
        _ = try await process.output.first(awaiting: "the command") { $0 == "ready" ? $0 : nil }
        #expect(try await shared.proxy.reload().name == "config.reload")
        try shared.bed.file("reloaded", "")
        _ = try await process.ending()
        let told = await process.errors.text.split(separator: "\n")
        #expect(told.count == 1 && told[0].hasPrefix(refusal), "\(told)")
    }
}

enum ExecRefusalBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let pins = """
            hosts:
              - match: wrong.test
                pinning: public-key
                pins: [\(String.wrongPin)]
              - match: denied.test
                action: deny
              - match: rule.test
                response: {status: [404]}
            """
        return try await OriginBed.prepare(
            bed, pins: pins,
            sections: ["proxy": ["listen: 127.0.0.1:\(bed.port())"], "upstream": [IsolationBed.opensLoopback]],
            hosts: ["right.test": "127.0.0.1", "wrong.test": "127.0.0.1", "rule.test": "127.0.0.1"],
            roots: roots)
    }
}
