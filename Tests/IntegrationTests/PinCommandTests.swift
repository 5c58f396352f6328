import Foundation
import PinproxyTestAuthority
import Testing

/// `pinproxy pin` with real servers, and what it prints in a real pin file.
@Suite(.timeLimit(.minutes(5)), .sharedBed(OriginBed.prepare))
struct PinCommandTests {
    private func pin(_ arguments: String..., folder: String = "proxy") async throws -> Run {
        let bed = try sharedBed().bed
        return try await bed.run(
            [ProxyProcess.executable, "pin", "--config", bed.path("\(folder)/pinproxy.yaml")] + arguments,
            environment: ProxyProcess.environment(in: bed))
    }

    @Test func whatItPrintsCanBePastedAndLetsTheHostThrough() async throws {
        let shared = try sharedBed()
        let bed = shared.bed
        let run = try await pin(shared.authority)
        #expect(run.succeeded, "\(run)")
        #expect(run.errors == "", "\(run)")
        #expect(run.output.contains("\n  - match: \(shared.authority)\n    pinning: public-key\n    pins:\n"), "\(run)")

        try bed.file("pasted/pins.yaml", "hosts:\n" + run.output)
        try bed.file(
            "pasted/pinproxy.yaml",
            "proxy: {listen: 127.0.0.1:0}\nupstream: {trust: [\(bed.path("roots.pem"))]}\npins: pins.yaml\n")
        let check = try await bed.run(
            [ProxyProcess.executable, "check", "--config", bed.path("pasted/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed))
        #expect(check.succeeded && check.errors == "", "\(check)")

        let proxy = try await ProxyProcess(
            in: bed, folder: "pasted", pins: "hosts:\n" + run.output, trust: bed.path("roots.pem"),
            hosts: [OriginBed.name: "127.0.0.1"])
        #expect(try await proxy.connect(to: shared.authority).status == 200)
        await proxy.process.stop()
    }

    @Test func thePinsAreThoseOfTheLeafAndItsIssuer() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("two.test")
            let server = try await OpenSSLServer(in: bed, chain: ServedChain(leaf), ["-www"])
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: roots.write(to: bed))
            try bed.file("proxy/hosts", "127.0.0.1 two.test\n")
            let run = try await bed.run(
                [
                    ProxyProcess.executable, "pin", "two.test:\(server.port)", "--json", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ], environment: ProxyProcess.environment(in: bed))
            #expect(run.succeeded, "\(run)")
            let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
            let pins = [try await leaf.pin(bed), try await roots.intermediate.pin(bed)].map {
                $0.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            #expect(report.pins.map(\.pin) == pins)
            #expect(report.verified)
            #expect(report.chain.map(\.role) == ["leaf", "issuer", "root"])
            #expect(report.chain.map(\.depth) == [0, 1, 2])
            #expect(report.tls_version == "TLS 1.3")
        }
    }

    private struct Report: Decodable {
        struct Pin: Decodable { let pin: String }
        struct Certificate: Decodable {
            let depth: Int
            let role: String
        }
        let verified: Bool
        let tls_version: String
        let pins: [Pin]
        let chain: [Certificate]
    }

    @Test func whatDoesNotVerifyIsShownAndNotGivenToPaste() async throws {
        let shared = try sharedBed()
        try shared.bed.file("strangers/pinproxy.yaml", "pins: null\n")
        let run = try await pin(shared.authority, folder: "strangers")
        #expect(run.ending == .exited(1), "\(run)")
        #expect(run.output == "", "\(run)")
        #expect(run.errors.contains("unknown issuer"), "\(run)")
        #expect(run.errors.contains("NOT VERIFIED"), "\(run)")
        #expect(run.errors.contains("CN=\(OriginBed.name)"), "\(run)")
    }

    @Test func theLocalAuthorityVouchesForNoOrigin() async throws {
        let shared = try sharedBed()
        let bed = shared.bed
        // An origin with a chain of the proxy's own authority, which a user added to the trust.
        let authority = shared.proxy.authority
        try bed.file("own/pinproxy.yaml", "upstream: {trust: [\(authority)]}\npins: null\n")
        let chain = try bed.contents("proxy/state/pinproxy/authority.pem")
        let key = try bed.contents("proxy/state/pinproxy/authority.key")
        try await withTestBed { inner in
            let server = try await OpenSSLServer(
                in: inner, chain: ServedChain(pem: chain, keyPEM: key), ["-www"])
            let run = try await pin("\(OriginBed.name):\(server.port)", folder: "own")
            #expect(run.ending == .exited(1), "\(run)")
            #expect(run.errors.contains("Certificate verification failure"), "\(run)")
        }
    }

    @Test(arguments: [
        ("nowhere.onion", "nowhere.onion: no such host"),
        ("origin.test:1", "Connection refused"),
        ("[::1]:1", "Connection refused"),
        ("::1", "[::1]:443"),
        ("169.254.169.254", "link-local"),
    ]) func saysWhyItDidNotConnect(_ host: String, _ words: String) async throws {
        let run = try await pin(host)
        #expect(run.ending == .exited(1), "\(run)")
        #expect(run.output == "", "\(run)")
        #expect(run.errors.contains(words), "\(run)")
    }

    @Test func saysThatAServerIsTooOld() async throws {
        try await withTestBed { inner in
            let old = try await OpenSSLServer(
                in: inner, chain: try TestRoots().chain(OriginBed.name),
                ["-www", "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"])
            let run = try await pin("\(OriginBed.name):\(old.port)")
            #expect(run.ending == .exited(1), "\(run)")
            #expect(run.errors.contains("TLS with \(OriginBed.name) failed"), "\(run)")
        }
    }

    @Test func takesANameInAnyLanguage() async throws {
        let run = try await pin("Bücher.onion")
        #expect(run.ending == .exited(1), "\(run)")
        #expect(run.errors.contains("xn--bcher-kva.onion: no such host"), "\(run)")
    }
}
