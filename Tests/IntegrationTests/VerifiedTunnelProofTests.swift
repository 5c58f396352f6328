import PinproxyTestAuthority
import Testing

/// `action: verify-tunnel` in TLS 1.2: the origin's signature of the key exchange proves that it holds its
/// certificate's key, before the client gets a byte of its answer.
@Suite(.timeLimit(.minutes(5)))
struct VerifiedTunnelProofTests {
    /// The right chain, which is public, with a signature by another key; or by the right key, in another
    /// handshake.
    @Test(arguments: ["key=other", "key=pinned,random=old"])
    func aCopiedChainIsRefused(forgery: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "forged=pinned,\(forgery)", "chain=other")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.2")
            #expect(result["status"] == "200" && result["error"] == "TLSV1_ALERT_DECRYPT_ERROR", "\(result)")
            let event = try await proxy.events.first("trust.failure")
            #expect(event["verification"] == "in-band", "\(event)")
            #expect(event["cause"]?.contains("didn't prove that it holds its certificate's key") == true, "\(event)")
            let line = try await proxy.tunnelLine()
            #expect(line["error"] == "tls_certificate_error" && line["bytes_down"] == "0", "\(line)")
            // The probe's result is void by now.
            let answer = try await proxy.connect(to: "\(VerifiedTunnelBed.name):\(origin.port)")
            Expected.refused(502, "pinning failure").check(answer, host: VerifiedTunnelBed.name)
        }
    }

    /// The same messages with the right signature reach the client, so the signature is what is refused above.
    @Test func theSameHandshakeWithTheRightSignaturePasses() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "forged=pinned,key=pinned")
            let proxy = try await tunnels.proxy()
            let connection = try RawConnection(to: proxy)
            let authority = "\(VerifiedTunnelBed.name):\(origin.port)"
            let hello = try await tunnels.client(via: proxy, to: origin.port, "--hello", "--tls", "1.2")
            let digits = try #require(hello["bytes"]).compactMap(\.hexDigitValue)
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            try await connection.send(
                stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
            // A handshake record, not an alert.
            #expect(try await connection.receive().first == 22)
        }
    }

    enum Leaf: String, Sendable {
        case rsa, p256, p384, ed25519

        var kind: TestKey.Kind {
            switch self {
            case .rsa: .rsa(2048)
            case .p256: .p256
            case .p384: .p384
            case .ed25519: .ed25519
            }
        }
    }

    /// `openssl s_server` with each kind of key, asked for each kind of signature.
    @Test(arguments: [
        (Leaf.rsa, ["-sigalgs", "RSA+SHA256"]), (.rsa, ["-sigalgs", "RSA+SHA512"]),
        (.rsa, ["-sigalgs", "rsa_pss_rsae_sha256"]), (.rsa, ["-sigalgs", "rsa_pss_rsae_sha384"]),
        (.rsa, ["-cipher", "DHE-RSA-AES128-GCM-SHA256"]), (.p256, ["-sigalgs", "ECDSA+SHA256"]),
        (.p256, ["-groups", "P-521:P-256"]), (.p384, ["-sigalgs", "ECDSA+SHA384"]), (.ed25519, []),
    ])
    func originsThatHoldTheirKeyPass(_ leaf: Leaf, _ options: [String]) async throws {
        try await withTestBed { bed in
            let (tunnels, server) = try await served(leaf, bed)
            let proxy = try await tunnels.proxy(pin: server.pin)
            let run = try await tunnels.openSSLClient(via: proxy, to: server.port, ["-tls1_2"] + options)
            #expect(run.output.contains("HTTP/1.0 200 ok"), "\(run)")
            let line = try await proxy.tunnelLine()
            #expect(line["verification"] == "in-band" && line["cause"] == nil, "\(line)")
        }
    }

    /// Static RSA: nothing is signed. SHA-1: signatures can be forged.
    @Test(arguments: [
        ("AES128-GCM-SHA256", [], "doesn't sign the key exchange"),
        ("ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0", ["-sigalgs", "RSA+SHA1"], "not accepted (0x0201)"),
    ])
    func whatProvesNothingIsRefused(_ suites: String, _ options: [String], _ cause: String) async throws {
        try await withTestBed { bed in
            let (tunnels, server) = try await served(.rsa, bed)
            let proxy = try await tunnels.proxy(pin: server.pin)
            let run = try await tunnels.openSSLClient(
                via: proxy, to: server.port, ["-tls1_2", "-cipher", suites] + options)
            #expect(!run.output.contains("200 ok"), "\(run)")
            let line = try await proxy.tunnelLine()
            #expect(line["cause"]?.contains(cause) == true && line["bytes_down"] == "0", "\(line)")
        }
    }

    /// The signature is right, but the certificate doesn't allow its key to make one.
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func aKeyThatMayNotSign(version: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let held = try tunnels.roots.leaf(VerifiedTunnelBed.name) {
                $0.key = .rsa(2048)
                $0.keyUsage = [.keyEncipherment]
            }
            let server = try await OpenSSLServer(in: bed, chain: ServedChain(held), ["-www", version])
            let pin = try await held.pin(bed)
            let authority = "\(VerifiedTunnelBed.name):\(server.port)"
            let words = "its keyUsage doesn't have digitalSignature"
            let tunnel = try await tunnels.proxy(pin: pin)
            Expected.refused(502, words).check(try await tunnel.connect(to: authority), host: VerifiedTunnelBed.name)
            let intercepting = try await ProxyProcess(
                in: bed, folder: "intercepting", trust: bed.path("roots.pem"),
                hosts: [VerifiedTunnelBed.name: "127.0.0.1"])
            Expected.refused(502, words).check(
                try await intercepting.connect(to: authority), host: VerifiedTunnelBed.name)
        }
    }

    private func served(
        _ leaf: Leaf, _ bed: TestBed
    ) async throws -> (VerifiedTunnelBed, (port: UInt16, pin: String)) {
        let tunnels = try await VerifiedTunnelBed(bed)
        let held = try tunnels.roots.leaf(VerifiedTunnelBed.name) {
            $0.key = leaf.kind
            $0.keyUsage = [.digitalSignature, .keyEncipherment]
        }
        let server = try await OpenSSLServer(
            in: bed, chain: ServedChain(held), ["-www", "-cipher", "DEFAULT:@SECLEVEL=0"])
        return (tunnels, (server.port, try await held.pin(bed)))
    }
}
