import PinproxyTestAuthority
import Testing

/// Origins and clients with post-quantum signatures (ML-DSA), with OpenSSL 3.5 as the peer.
@Suite(.enabled(if: Probe.hasPostQuantum, "OpenSSL is older than 3.5"), .timeLimit(.minutes(5)))
struct PostQuantumTests {
    private static let name = "quantum.test"
    private static let key = TestKey.Kind.mlDSA(65)

    /// An origin with such keys in its whole chain, and a proxy with this pin.
    private func served(
        in bed: TestBed, pin: (HeldCertificate) async throws -> String, _ options: [String] = []
    ) async throws -> (proxy: ProxyProcess, authority: String) {
        let root = try HeldCertificate.selfSigned(.root("Quantum Root").validToday.with { $0.key = Self.key })
        let leaf = try root.issue(TestRoots.template([Self.name]) { $0.key = Self.key })
        let server = try await OpenSSLServer(in: bed, chain: ServedChain(leaf), ["-www"] + options)
        let pins = """
            hosts:
              - match: \(Self.name)
                pinning: public-key
                pins: [\(try await pin(leaf))]
            """
        let proxy = try await ProxyProcess(
            in: bed, pins: pins, trust: bed.file("roots.pem", root.pem), hosts: [Self.name: "127.0.0.1"])
        return (proxy, "\(Self.name):\(server.port)")
    }

    private func explain(_ authority: String, in bed: TestBed) async throws -> Run {
        try await bed.run(
            [ProxyProcess.executable, "explain", "--verbose", authority, "--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed))
    }

    @Test func anOriginIsVerifiedAndPinned() async throws {
        try await withTestBed { bed in
            let (proxy, authority) = try await served(in: bed) { try await $0.pin(bed) }
            let client = try await bed.run(
                ["curl", "-sS", "https://\(authority)/"], environment: proxy.clientEnvironment)
            #expect(client.succeeded && client.output.contains("s_server"), "\(client)")
            let explained = try await explain(authority, in: bed)
            #expect(explained.succeeded && explained.output.contains("ML-DSA-65"), "\(explained)")
        }
    }

    @Test func aWrongPinIsRefused() async throws {
        try await withTestBed { bed in
            let (proxy, authority) = try await served(in: bed) { _ in .wrongPin }
            let answer = try await proxy.connect(to: authority)
            Expected.refused(502, "pinning failure").check(answer, host: Self.name)
        }
    }

    /// TLS 1.2 has no code point for such signatures.
    @Test func anOriginThatSpeaksOnlyTLS12IsRefused() async throws {
        try await withTestBed { bed in
            let (proxy, authority) = try await served(in: bed, pin: { try await $0.pin(bed) }, ["-tls1_2"])
            let answer = try await proxy.connect(to: authority)
            #expect(answer.status == 502, "\(answer)")
        }
    }

    /// Leaves of the local authority have ECDSA keys. An alert refuses a client that takes only ML-DSA.
    @Test func aClientThatTakesNothingElseIsRefused() async throws {
        try await withTestBed { bed in
            let (proxy, authority) = try await served(in: bed) { try await $0.pin(bed) }
            let client = try await bed.run([
                "timeout", "30", "openssl", "s_client", "-proxy", "\(proxy.address):\(proxy.port)", "-connect",
                authority, "-servername", Self.name, "-CAfile", proxy.authority, "-sigalgs", "mldsa65",
            ])
            #expect(client.errors.contains("handshake failure"), "\(client)")
            let line = try await proxy.events.first("exchange")
            #expect(line["cause"]?.contains("signature") == true, "\(line)")
        }
    }
}
