import PinproxyTestAuthority
import Testing

/// `action: verify-tunnel`: what is refused at CONNECT, by what the probe finds.
@Suite(.timeLimit(.minutes(5)))
struct VerifiedTunnelConnectTests {
    @Test func aWrongPinIsRefusedAtConnect() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=other")
            let proxy = try await tunnels.proxy()
            let authority = "\(VerifiedTunnelBed.name):\(origin.port)"
            let answer = try await proxy.connect(to: authority)
            Expected.refused(502, "pinning failure").check(answer, host: VerifiedTunnelBed.name)
            let presented = try await tunnels.other.pin(bed)
            #expect(answer["Proxy-Status"]?.contains(presented) == true, "\(answer)")
            let event = try await proxy.events.first("pin.mismatch")
            #expect(event["verification"] == "probe (weaker)" && event["host"] == VerifiedTunnelBed.name, "\(event)")
            // Refusals aren't cached: the next CONNECT probes again.
            #expect(try await proxy.connect(to: authority).status == 502)
            #expect(origin.events.all("hello").count == 2)
        }
    }

    @Test func anOriginThatNobodyVouchesForIsRefusedAtConnect() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let stranger = try TestRoots("Stranger").leaf(VerifiedTunnelBed.name)
            try bed.file("stranger.pem", ServedChain(stranger).pem)
            try bed.file("stranger.key", stranger.keyPEM)
            let origin = try await tunnels.origin("chain=stranger")
            let proxy = try await tunnels.proxy()
            let answer = try await proxy.connect(to: "\(VerifiedTunnelBed.name):\(origin.port)")
            Expected.refused(502, "unknown issuer").check(answer, host: VerifiedTunnelBed.name)
            #expect(try await proxy.events.first("trust.failure")["verification"] == "probe (weaker)")
        }
    }

    @Test func anOriginThatDoesNotSpeakTLSIsRefusedAtConnect() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("raw=485454502f312e3120343030")
            let proxy = try await tunnels.proxy()
            let answer = try await proxy.connect(to: "\(VerifiedTunnelBed.name):\(origin.port)")
            #expect(answer.status == 502, "\(answer)")
        }
    }

    @Test func aReportedMismatchPassesAndIsLoggedForBothHandshakes() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=other")
            let proxy = try await tunnels.proxy(more: "enforcement: report")
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.2")
            #expect(result["body"] == "handshake 2", "\(result)")
            for verification in ["probe (weaker)", "in-band"] {
                _ = try await proxy.events.first("pin.report") { $0["verification"] == verification }
            }
        }
    }

    @Test func anOriginThatDoesNotStapleWhereItMustIsRefusedAtConnect() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let proxy = try await tunnels.proxy(more: "ocsp: require")
            let bare = try await tunnels.openSSLServer()
            let authority = "\(VerifiedTunnelBed.name):\(bare.port)"
            Expected.refused(502, "ocsp").check(try await proxy.connect(to: authority), host: VerifiedTunnelBed.name)

            let revoked = try await tunnels.stapling { $0.status = .revoked(date: TestRoots.now - 60, reason: nil) }
            let other = "\(VerifiedTunnelBed.name):\(revoked.port)"
            Expected.refused(502, "revoked").check(try await proxy.connect(to: other), host: VerifiedTunnelBed.name)
        }
    }
}
