import PinproxyTestAuthority
import Testing

/// `action: verify-tunnel`: what an origin may not answer to the client's ClientHello, after 200.
@Suite(.timeLimit(.minutes(5)))
struct VerifiedTunnelOriginTests {
    /// A TLS 1.1 ServerHello with a ChangeCipherSpec after it, as if a session were resumed.
    private static let oldResumption =
        "160302002a02000026" + "0302" + String(repeating: "07", count: 32) + "00" + "c009" + "00" + "140302000101"
    /// The same in TLS 1.2, with a session that the client doesn't know.
    private static let unofferedResumption =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c02b" + "00" + "140303000101"
    private static let foreignResumption =
        "160303004a02000046" + "0303" + String(repeating: "07", count: 32) + "20" + String(repeating: "05", count: 32)
        + "c02b" + "00"
        + "140303000101"
    /// A ServerHello of TLS 1.3 that selects the first pre-shared key.
    private static let unofferedKey =
        "160303003802000034" + "0303" + String(repeating: "07", count: 32) + "00" + "1301" + "00" + "000c"
        + "002b00020304" + "002900020000"
    private static let anonymous =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c018" + "00" + "16030300040c000000"

    private static let unreadable =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c02b" + "00"
        + "160303000f" + "0b000007000004000001" + "30" + "0e000000"

    /// A certificate, then an alert where the handshake should continue.
    private static let brokenOff =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c02b" + "00"
        + "160303000b" + "0b000007000004000001" + "30" + "15030300020250"

    /// The origin presents one certificate to the proxy, and another to the client.
    @Test(arguments: [
        ("1.2", "other", "SSLV3_ALERT_BAD_CERTIFICATE", "pin.mismatch"),
        ("1.2", "stranger", "TLSV1_ALERT_UNKNOWN_CA", "trust.failure"),
        ("1.2", "expired", "SSLV3_ALERT_CERTIFICATE_EXPIRED", "trust.failure"),
    ])
    func theCertificateThatPassesByDecides(version: String, chain: String, alert: String, event: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let stranger = try TestRoots("Stranger").leaf(VerifiedTunnelBed.name)
            let expired = try tunnels.roots.leaf(VerifiedTunnelBed.name) {
                $0.keyPair = tunnels.pinned.key
                $0.notAfter = TestRoots.now - 60
            }
            for (name, leaf) in [("stranger", stranger), ("expired", expired)] {
                try bed.file("\(name).pem", ServedChain(leaf).pem)
                try bed.file("\(name).key", leaf.keyPEM)
            }
            let origin = try await tunnels.origin("chain=pinned", "chain=\(chain)")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", version)
            #expect(result["status"] == "200" && result["error"] == alert, "\(result)")
            #expect(try await proxy.events.first(event)["verification"] == "in-band")
            let line = try await proxy.tunnelLine()
            #expect(line["status"] == "200" && line["error"] == "tls_certificate_error", "\(line)")
            #expect(line["bytes_down"] == "0" && line["cause"]?.isEmpty == false, "\(line)")
            // The origin gets nothing of the client's but its hello.
            _ = try await origin.events.first("failed") { $0["handshake"] == "2" }
        }
    }

    /// The probe's recent result is void once another certificate was seen.
    @Test func aRefusalInBandEndsWhatTheProbeFound() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "chain=other")
            let proxy = try await tunnels.proxy()
            let first = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.2")
            #expect(first["status"] == "200" && first["error"] == "SSLV3_ALERT_BAD_CERTIFICATE", "\(first)")
            let answer = try await proxy.connect(to: "\(VerifiedTunnelBed.name):\(origin.port)")
            Expected.refused(502, "pinning failure").check(answer, host: VerifiedTunnelBed.name)
        }
    }

    /// In TLS 1.3 the certificate is encrypted; a probe that looks like the client gets it instead.
    @Test func anotherCertificateByApplicationProtocolIsFoundByAProbe() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "chain=other", "chain=other")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.3", "--alpn", "http/1.1")
            #expect(result["status"] == "200" && result["error"] == "SSLV3_ALERT_BAD_CERTIFICATE", "\(result)")
            #expect(try await proxy.events.first("pin.mismatch")["verification"] == "probe (weaker)")
            #expect(try await proxy.tunnelLine()["error"] == "tls_certificate_error")
        }
    }

    /// Its TLS 1.2 certificate was verified; its TLS 1.3 one was never seen.
    @Test func anOriginThatWasOlderToTheProbeIsRefused() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin(
                "chain=pinned,tls=1.2", "chain=pinned,tls=1.3", "chain=pinned,tls=1.2")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port)
            #expect(result["error"] == "SSLV3_ALERT_HANDSHAKE_FAILURE", "\(result)")
            let event = try await proxy.events.first("trust.failure")
            #expect(event["cause"]?.contains("TLS 1.2 with the probe") == true, "\(event)")
        }
    }

    /// Certificates are public: the probe's origin showed another's, and ended before it had to sign.
    @Test(arguments: ["1.3", "1.2"])
    func aCopiedCertificateCountsForNothing(version: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("copied=pinned", "chain=other")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(
                via: proxy, to: origin.port, "--tls", version, "--alpn", "h2,http/1.1")
            #expect(result["status"] == "502", "\(result)")
        }
    }

    @Test(arguments: [
        (oldResumption, "TLSV1_ALERT_PROTOCOL_VERSION", "TLS 1.1"),
        (anonymous, "SSLV3_ALERT_HANDSHAKE_FAILURE", "presents no certificate"),
        (unreadable, "SSLV3_ALERT_BAD_CERTIFICATE", "can't be read"),
        ("474554202f", "SSLV3_ALERT_HANDSHAKE_FAILURE", "other than TLS"),
        ("16030300040b000000", "SSLV3_ALERT_HANDSHAKE_FAILURE", "malformed"),
        // An alert of the origin's own says nothing that it has to be trusted for.
        ("15030300020250", "TLSV1_ALERT_INTERNAL_ERROR", "alert 80"),
        // Only the alert is passed on: what preceded it was not verified.
        (brokenOff, "TLSV1_ALERT_INTERNAL_ERROR", "alert 80"),
    ])
    func aFlightThatIsNoneIsRefused(bytes: String, alert: String, cause: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "raw=\(bytes)")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.2")
            #expect(result["error"] == alert, "\(result)")
            let line = try await proxy.tunnelLine()
            #expect(line["cause"]?.contains(cause) == true, "\(line)")
        }
    }

    /// Who resumes a session shows no certificate. A client that offered none would notice, and the proxy does.
    @Test(arguments: [("1.2", unofferedResumption), ("1.2", foreignResumption), ("1.3", unofferedKey)])
    func aResumptionThatTheClientDidNotOffer(version: String, bytes: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "raw=\(bytes)")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", version)
            #expect(result["status"] == "200" && result["error"] == "SSLV3_ALERT_ILLEGAL_PARAMETER", "\(result)")
            let line = try await proxy.tunnelLine()
            #expect(line["cause"]?.contains("resumed a session that the client didn't offer") == true, "\(line)")
            #expect(line["error"] == "tls_protocol_error" && line["bytes_down"] == "0", "\(line)")
        }
    }

    @Test func theMinimumVersionHoldsForWhatPassesBy() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy(more: "min_tls: 1.3")
            let old = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.2")
            #expect(old["error"] == "TLSV1_ALERT_PROTOCOL_VERSION", "\(old)")
            let new = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.3")
            #expect(new["body"]?.hasPrefix("handshake") == true, "\(new)")
        }
    }

    @Test func aSilentOriginIsTimedOut() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned", "silent=1")
            let proxy = try await tunnels.proxy(sections: ["timeouts": ["tls_handshake: 2s"]])
            let result = try await tunnels.client(via: proxy, to: origin.port)
            #expect(result["error"] != nil, "\(result)")
            #expect(try await proxy.tunnelLine()["cause"]?.contains("took too long") == true)
        }
    }

    @Test func earlyDataIsHeldUntilTheVerdict() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            // The third ClientHello is that of the probe with the client's own (no) ALPN.
            let origin = try await tunnels.origin("chain=pinned", "chain=pinned", "chain=pinned,hold=1")
            let proxy = try await tunnels.proxy()
            async let client = tunnels.client(
                via: proxy, to: origin.port, "--tls", "1.3", "--behind", "1703030003010203", "--pipelined")
            let held = try await origin.events.first("hello") { $0["handshake"] == "3" }
            #expect(held["connection"] != "2")
            let total = try #require(origin.events.all("received").last { $0["connection"] == "2" }?["total"])
            let release = try RawConnection(port: origin.port)
            try await release.send("GO")
            // The held bytes arrive now, and the client's Finished may follow closely.
            _ = try await origin.events.first("received") { event in
                event["connection"] == "2" && Int(event["total"] ?? "") ?? 0 > Int(total) ?? 0
            }
            let result = try await client
            #expect(result["hello"] == total, "\(result)")
        }
    }
}
