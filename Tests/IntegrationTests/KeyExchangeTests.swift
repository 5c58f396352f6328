import PinproxyTestAuthority
import Testing

/// The key exchange groups of both sides, with OpenSSL as the peer. Any group that it offers alone is accepted. If both
/// support post-quantum key exchange, the proxy keeps it.
@Suite(.timeLimit(.minutes(5)))
struct KeyExchangeTests {
    /// - Parameter group: of both ends; nil: their own choice.
    private func exchange(_ group: String?, as name: String) async throws {
        try await withTestBed { bed in
            let options = group.map { ["-groups", $0] } ?? []
            let roots = try TestRoots()
            let server = try await OpenSSLServer(
                in: bed, chain: ServedChain(try roots.leaf("groups.test")), ["-www"] + options)
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["groups.test": "127.0.0.1"])
            let client = try await bed.run(
                [
                    "timeout", "30", "openssl", "s_client", "-proxy", "\(proxy.address):\(proxy.port)", "-connect",
                    "groups.test:\(server.port)", "-servername", "groups.test", "-CAfile", proxy.authority,
                    "-verify_return_error", "-quiet",
                ] + options,
                input: Array("GET / HTTP/1.1\r\nHost: groups.test:\(server.port)\r\nConnection: close\r\n\r\n".utf8))
            #expect(client.output.contains("s_server"), "\(client)")
            let line = try await proxy.events.first("exchange") { $0["method"] == "GET" }
            #expect(line["client_tls_group"] == name, "\(line)")
            #expect(line["tls_group"] == name, "\(line)")

            let explain = try await bed.run(
                [
                    ProxyProcess.executable, "explain", "groups.test:\(server.port)", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ],
                environment: ProxyProcess.environment(in: bed))
            #expect(explain.output.contains(" TLS_AES_128_GCM_SHA256 \(name)\n"), "\(explain)")
        }
    }

    @Test(arguments: [("X25519", "x25519"), ("P-256", "secp256r1"), ("P-384", "secp384r1")])
    func aGroupOfItsOwn(_ group: String, _ name: String) async throws { try await exchange(group, as: name) }

    @Test func postQuantumWhereOpenSSLHasIt() async throws {
        if Probe.hasPostQuantum { try await exchange("X25519MLKEM768", as: "X25519MLKEM768") }
        try await exchange(nil, as: Probe.hasPostQuantum ? "X25519MLKEM768" : "x25519")
    }
}
