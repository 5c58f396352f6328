import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy explain` beside the proxy that it explains, with one configuration.
@Suite(.timeLimit(.minutes(5)), .sharedBed(ExplainBed.prepare))
struct ExplainCommandTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private func explain(_ arguments: String...) async throws -> Run {
        try await shared.bed.run(
            [ProxyProcess.executable, "explain", "--config", shared.bed.path("proxy/pinproxy.yaml")] + arguments,
            environment: ProxyProcess.environment(in: shared.bed))
    }

    private func account(_ arguments: String...) async throws -> (run: Run, account: ExplainedHost) {
        let run = try await shared.bed.run(
            [ProxyProcess.executable, "explain", "--json", "--config", shared.bed.path("proxy/pinproxy.yaml")]
                + arguments, environment: ProxyProcess.environment(in: shared.bed))
        return (run, try ExplainedHost(run))
    }

    private struct Problem: Decodable {
        let title: String
        let status: Int
        let detail: String
    }

    /// `explain` prints the proxy's own refusal, whatever keeps a host from being reached.
    @Test(arguments: [
        "wrong.test", "stranger.test", "denied.test", "nowhere.onion", "metadata.test", "closed.test", "plain.test",
        "expired-pins.test", "unchecked.test",
    ]) func itsTextIsTheOneThatAClientGets(_ name: String) async throws {
        let port =
            switch name {
            case "closed.test": UInt16(1)
            case "plain.test": try await plainTLSPort()
            default: shared.originPort
            }
        let answer = try await shared.proxy.connect(to: "\(name):\(port)")
        let problem = try JSONDecoder().decode(Problem.self, from: Data(answer.body.utf8))
        let (run, account) = try await account("\(name):\(port)")
        #expect(run.ending == .exited(1), "\(run)")
        let refusal = try #require(account.refusal)
        #expect(refusal.title == problem.title)
        #expect(refusal.status == problem.status)
        // A client's refusal ends with lines about the client.
        let told = problem.detail.components(separatedBy: "\n  client ")[0]
        #expect(refusal.details == told && told.isEmpty == false)
        #expect(!account.let_through)

        let text = try await explain("\(name):\(port)")
        #expect(text.ending == .exited(1), "\(text)")
        #expect(
            text.output.hasPrefix("Refused: a client gets \(problem.status) \(problem.title)\n\n" + told),
            "\(text)")
    }

    /// A server that answers a ClientHello in the clear.
    private func plainTLSPort() async throws -> UInt16 {
        try await NginxOrigin(
            in: shared.bed, folder: "plain-nginx",
            sites: [.init(name: "plain.test", chain: TestRoots().chain("plain.test"))]
        ).plainPort
    }

    @Test func whatIsLetThroughIsAccountedFor() async throws {
        let (run, account) = try await account("right.test:\(shared.originPort)")
        #expect(run.succeeded, "\(run)")
        #expect(account.let_through && !account.reported && account.verified)
        #expect(account.refusal == nil)
        #expect(account.entry?.pattern == "right.test")
        #expect(account.entry?.line == 5)
        #expect(account.also_matching?.map(\.pattern) == ["*.test"])
        #expect(account.action == "intercept")
        #expect(account.tls_version == "TLS 1.3")
        #expect(account.tls_group?.contains("25519") == true)
        #expect(account.chain.map(\.role) == ["leaf", "issuer", "root"])
        #expect(account.matched_depth == 2)
        #expect(account.checks.contains { $0.name == "pins" && $0.outcome == "passed" })
        #expect(account.checks.contains { $0.name == "name" && $0.outcome == "passed" })
        #expect(try await shared.proxy.connect(to: "right.test:\(shared.originPort)").status == 200)

        let text = try await explain("right.test:\(shared.originPort)")
        #expect(text.output.contains("pins.yaml:5: match: right.test, the most specific of 2\n"), "\(text)")
        #expect(text.output.hasPrefix("Let through\n\nhost      right.test:"), "\(text)")
        // A certificate takes two lines, unless all of it is asked for.
        let long = try await explain("right.test:\(shared.originPort)", "--verbose")
        #expect(long.output.contains("\n    SHA-256     ") && !text.output.contains("SHA-256     "), "\(long)")
        #expect(long.output.hasPrefix("Let through\n\n") && long.output.count > text.output.count)
        #expect(
            text.output.hasSuffix("--verbose shows the whole chain, and what each check compared")
                && !long.output.contains("--verbose"))
        #expect(!text.output.contains("\u{1B}"), "colours are for terminals")
    }

    @Test func whatIsOnlyReportedIsLetThrough() async throws {
        let (run, account) = try await account("report.test:\(shared.originPort)")
        #expect(run.succeeded, "\(run)")
        #expect(account.let_through && account.reported)
        #expect(account.checks.contains { $0.name == "pins" && $0.outcome == "reported" })
        let text = try await explain("report.test:\(shared.originPort)")
        #expect(text.output.contains("Let through, and reported:\n\nCertificate pinning failure for report.test\n"))
    }

    @Test func aTunnelIsOnlyConnected() async throws {
        let (run, account) = try await account("tunnel.test:\(shared.originPort)")
        #expect(run.succeeded, "\(run)")
        #expect(account.action == "tunnel")
        #expect(account.checks.isEmpty && account.chain.isEmpty)
        let closed = try await explain("tunnel.test:1")
        #expect(closed.ending == .exited(1), "\(closed)")
        #expect(closed.output.contains("Refused: a client gets 502 Cannot connect to tunnel.test:1"), "\(closed)")
    }

    @Test func aVerifiedTunnelIsJudgedAsAnyOther() async throws {
        let (right, account) = try await account("checked.test:\(shared.originPort)")
        #expect(right.succeeded, "\(right)")
        #expect(account.action == "verify-tunnel" && account.verified)
        #expect(account.checks.contains { $0.name == "pins" && $0.outcome == "passed" })
    }

    /// Its origin wants a certificate of the client's, and ends every handshake without one.
    @Test func aVerifiedTunnelToMutualTLSIsLetThrough() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let server = try await OpenSSLServer(
                in: bed, chain: ServedChain(try roots.leaf("mutual.test")), ["-Verify", "1", "-tls1_2", "-www"])
            try ProxyProcess.write(
                to: bed, folder: "proxy",
                pins: """
                    hosts:
                      - {match: mutual.test, action: verify-tunnel, pinning: public-key, pins: [{file: ../roots.pem}]}

                    """,
                trust: roots.write(to: bed))
            try bed.file("proxy/hosts", "127.0.0.1 mutual.test\n")
            let run = try await bed.run(
                [
                    ProxyProcess.executable, "explain", "mutual.test:\(server.port)", "--json", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ], environment: ProxyProcess.environment(in: bed))
            #expect(run.succeeded, "\(run)")
            let account = try ExplainedHost(run)
            #expect(account.verified && account.let_through)
            #expect(account.tls_version == "TLS 1.2")
            #expect(account.tls_group == nil)
        }
    }

    @Test func aHostWithoutAnEntryIsTheDefaults() async throws {
        let (run, account) = try await account("[::1]:1")
        #expect(run.ending == .exited(1), "\(run)")
        #expect(account.entry == nil)
        #expect(account.host == "::1" && account.port == 1)
        let text = try await explain("[::1]:1")
        #expect(text.output.contains("entry     none matches: the defaults of the pin file decide\n"), "\(text)")
    }

    /// The very dates that the served chain will fail by.
    @Test func anotherDayIsTheClockOfAConnectionToo() async throws {
        let (run, account) = try await account("right.test:\(shared.originPort)", "--at", "2100-01-01")
        #expect(run.ending == .exited(1), "\(run)")
        #expect(account.at == "2100-01-01")
        #expect(account.refusal?.title.contains("expired") == true)
        #expect(account.checks.contains { $0.name == "dates" && $0.outcome == "failed" })
    }
}

/// What `pinproxy explain --json` prints.
struct ExplainedHost: Decodable {
    struct Entry: Decodable {
        let pattern: String
        let line: Int
    }
    struct Certificate: Decodable { let role: String }
    struct Check: Decodable {
        let name: String
        let outcome: String
    }
    struct Refusal: Decodable {
        let status: Int
        let title: String
        let details: String
    }
    let host: String
    let port: Int
    let at: String
    let entry: Entry?
    let also_matching: [Entry]?
    let action: String
    let tls_version: String?
    let tls_group: String?
    let verified: Bool
    let chain: [Certificate]
    let checks: [Check]
    let matched_depth: Int?
    let let_through: Bool
    let reported: Bool
    let refusal: Refusal?

    init(_ run: Run) throws {
        do {
            self = try JSONDecoder().decode(Self.self, from: Data(run.output.utf8))
        } catch {
            throw TestBedError("\(error) in \(run)")
        }
    }
}

private enum ExplainBed {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let names = [
            "right", "wrong", "report", "tunnel", "denied", "closed", "plain", "expired-pins", "stranger", "checked",
            "unchecked",
        ]
        var hosts: [String: String] = [:]
        for name in names { hosts["\(name).test"] = "127.0.0.1" }
        hosts["metadata.test"] = "169.254.169.254"
        return try await OriginBed.prepare(
            bed,
            pins: """
                hosts:
                  - match: "*.test"
                    pinning: public-key
                    pins: [{file: ../roots.pem}]
                  - match: right.test
                    pinning: public-key
                    pins: [{file: ../roots.pem}]
                  - {match: wrong.test, pinning: public-key, pins: [\(String.wrongPin)]}
                  - {match: report.test, pinning: public-key, pins: [\(String.wrongPin)], enforcement: report}
                  - {match: expired-pins.test, pinning: public-key, pins: [{file: ../roots.pem}],
                     expires: 2020-01-01, on_expiry: deny}
                  - {match: stranger.test, pinning: certificate, pins: [{file: stranger.pem}]}
                  - {match: tunnel.test, action: tunnel}
                  - {match: unchecked.test, action: verify-tunnel, pinning: public-key, pins: [\(String.wrongPin)]}
                  - {match: checked.test, action: verify-tunnel, pinning: public-key, pins: [{file: ../roots.pem}]}
                  - {match: denied.test, action: deny}

                """, hosts: hosts,
            files: ["proxy/stranger.pem": try TestRoots("Stranger").root.pem])
    }
}
