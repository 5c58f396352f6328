import Foundation
import TestAuthority
import Testing

/// `action: verify-tunnel`: what is refused, when, and how the client and the log are told.
@Suite(.timeLimit(.minutes(2)))
struct VerifiedTunnelRefusalTests {
    /// A ServerHello of TLS 1.1 that goes on with a change of cipher, as if a session were resumed.
    private static let oldResumption =
        "160302002a02000026" + "0302" + String(repeating: "07", count: 32) + "00" + "c009" + "00" + "140302000101"
    private static let anonymous =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c018" + "00" + "16030300040c000000"

    private static let unreadable =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c02b" + "00"
        + "160303000f" + "0b000007000004000001" + "30" + "0e000000"

    /// A certificate, and then an alert in the place of the rest.
    private static let brokenOff =
        "160303002a02000026" + "0303" + String(repeating: "07", count: 32) + "00" + "c02b" + "00"
        + "160303000b" + "0b000007000004000001" + "30" + "15030300020250"

    // MARK: Before 200

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
            // Refusals aren't remembered: the next one asks again.
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

    // MARK: The origin, after 200

    /// What is shown to the proxy is not what is shown to the client.
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
            // The origin is left without a word of the client's beyond its hello.
            _ = try await origin.events.first("failed") { $0["handshake"] == "2" }
        }
    }

    /// What the probe was shown a moment ago is worth nothing once another certificate was seen.
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

    /// In TLS 1.3 the certificate can't be seen; a probe that looks like the client is shown it.
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

    /// Its TLS 1.2 certificate was judged; the one of TLS 1.3 nobody has seen.
    @Test func anOriginThatWasOlderToTheProbeIsRefused() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned,tls=1.2", "chain=pinned,tls=1.3", "chain=pinned,tls=1.2")
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
        (anonymous, "SSLV3_ALERT_HANDSHAKE_FAILURE", "shows no certificate"),
        (unreadable, "SSLV3_ALERT_BAD_CERTIFICATE", "can't be read"),
        ("474554202f", "SSLV3_ALERT_HANDSHAKE_FAILURE", "not TLS"),
        ("16030300040b000000", "SSLV3_ALERT_HANDSHAKE_FAILURE", "malformed"),
        // An alert of the origin's own says nothing that it has to be trusted for.
        ("15030300020250", "TLSV1_ALERT_INTERNAL_ERROR", "alert 80"),
        // It alone is passed on: what came before it nobody has judged.
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
            // What was held comes now, and the client's Finished may be close behind.
            _ = try await origin.events.first("received") { event in
                event["connection"] == "2" && Int(event["total"] ?? "") ?? 0 > Int(total) ?? 0
            }
            let result = try await client
            #expect(result["hello"] == total, "\(result)")
        }
    }

    // MARK: The client, after 200

    /// With a port it is no host name, and a server may show another host's certificate to it.
    @Test(arguments: ["other.test", "origin.test.other.test", "127.0.0.1.origin.test", "origin.test:443"])
    func anotherNameThanThatOfConnectIsRefused(name: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--sni", name)
            #expect(result["error"] == "TLSV1_UNRECOGNIZED_NAME", "\(result)")
            let line = try await proxy.tunnelLine()
            #expect(line["cause"]?.contains(name) == true, "\(line)")
            #expect(line["cause"]?.contains("\(VerifiedTunnelBed.name):\(origin.port)") == true, "\(line)")
            // The origin has seen the probe's hello, and not the client's.
            #expect(origin.events.all("hello").count == 1)
        }
    }

    @Test(arguments: [("127.0.0.1", true), ("127.0.0.2", false)])
    func anAddressAsNameAgreesWithItself(_ name: String, _ agrees: Bool) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("127.0.0.1")
            let server = try await OpenSSLServer(in: bed, chain: ServedChain(leaf), ["-www"])
            let proxy = try await ProxyProcess(
                in: bed,
                pins: """
                    hosts:
                      - match: 127.0.0.1
                        action: verify-tunnel
                        pinning: public-key
                        pins: [\(try await leaf.pin(bed))]

                    """,
                trust: roots.write(to: bed))
            let authority = "127.0.0.1:\(server.port)"
            let run = try await bed.run(
                [
                    "timeout", "30", "openssl", "s_client", "-proxy", "\(proxy.address):\(proxy.port)", "-connect",
                    authority, "-servername", name, "-CAfile", bed.path("roots.pem"), "-verify_return_error", "-ign_eof",
                    "-alpn", "h2,http/1.1",
                ], input: Array("GET / HTTP/1.0\r\n\r\n".utf8))
            #expect(run.output.contains("HTTP/1.0 200 ok") == agrees, "\(run)")
            let line = try await proxy.tunnelLine()
            let cause = agrees ? nil : "this connection was made for \(authority) by CONNECT, but its SNI names \(name)"
            #expect(line["cause"] == cause, "\(line)")
        }
    }

    @Test func aNameIsComparedWithoutItsCase() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--sni", "ORIGIN.Test")
            #expect(result["body"] == "handshake 2" || result["body"] == "handshake 3", "\(result)")
        }
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\n\r\n", "does not speak TLS"), ("\u{16}\u{3}\u{1}\u{0}\u{4}\u{2}\u{0}\u{0}\u{0}", "malformed ClientHello"),
        ("\u{16}\u{3}\u{1}\u{0}\u{0}", "malformed ClientHello"), ("\u{16}\u{3}\u{1}", "ended before"), ("", "ended before"),
    ])
    func whatIsNoHelloIsNotPassedOn(bytes: String, cause: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let connection = try RawConnection(to: proxy)
            let authority = "\(VerifiedTunnelBed.name):\(origin.port)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            try await connection.send(bytes)
            if cause == "ended before" { try await connection.finishSending() }
            try await connection.end()
            let line = try await proxy.tunnelLine()
            #expect(line["cause"]?.contains(cause) == true, "\(line)")
            // The second connection was the tunnel's, and carried nothing.
            _ = try await origin.events.first("closed") { $0["connection"] == "2" }
            #expect(origin.events.all("received").last { $0["connection"] == "2" }?["total"] == "0")
        }
    }

    @Test func aHelloThatNeverEndsIsTimedOut() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy(sections: ["timeouts": ["tls_handshake: 2s"]])
            let connection = try RawConnection(to: proxy)
            let authority = "\(VerifiedTunnelBed.name):\(origin.port)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            try await connection.send("\u{16}\u{3}\u{1}")
            try await connection.end()
            #expect(try await proxy.tunnelLine()["cause"]?.contains("took too long") == true)
        }
    }

    enum Leaving: CaseIterable, Sendable {
        case duringTheProbe, beforeTheHello, withinTheHello, beforeTheAnswer, duringTheSecondProbe
    }

    /// Clients that go at any moment leave nothing open, and the proxy serves the next.
    @Test(arguments: Leaving.allCases)
    func clientsThatLeaveTakeTheirTunnelsWithThem(_ leaving: Leaving) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin =
                switch leaving {
                case .duringTheProbe: try await tunnels.origin("chain=pinned", "chain=pinned", "silent=1")
                case .beforeTheHello, .withinTheHello: try await tunnels.origin("chain=pinned")
                case .beforeTheAnswer: try await tunnels.origin("chain=pinned", "chain=pinned", "silent=1")
                case .duringTheSecondProbe:
                    try await tunnels.origin("chain=pinned", "chain=pinned", "chain=pinned", "silent=1")
                }
            let proxy = try await tunnels.proxy(sections: ["timeouts": ["tls_handshake: 2s"]])
            #expect(try await tunnels.curl(via: proxy, to: origin.port).output == "handshake 2")
            _ = try await proxy.events.first("exchange")
            let before = try proxy.openDescriptors()
            if leaving == .duringTheProbe {
                // Another policy, so that there is something to probe.
                try bed.file("proxy/pins.yaml", try await tunnels.entry(more: "position: leaf"))
                #expect(try await proxy.reload().name == "config.reload")
            }
            try await withThrowingDiscardingTaskGroup { group in
                for _ in 0..<10 { group.addTask { try await leave(leaving, proxy, origin.port, tunnels) } }
            }
            try await eventually("descriptors to be closed") { try proxy.openDescriptors() <= before }
        }
    }

    private func leave(
        _ leaving: Leaving, _ proxy: ProxyProcess, _ port: UInt16, _ tunnels: VerifiedTunnelBed
    ) async throws {
        let authority = "\(VerifiedTunnelBed.name):\(port)"
        let connect = "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n"
        switch leaving {
        case .beforeTheAnswer:
            _ = try await tunnels.client(via: proxy, to: port, "--tls", "1.2")
        case .duringTheSecondProbe:
            _ = try await tunnels.client(via: proxy, to: port, "--tls", "1.3", "--alpn", "other")
        case .duringTheProbe, .beforeTheHello, .withinTheHello:
            let connection = try RawConnection(to: proxy)
            try await connection.resetOnClose()
            try await connection.send(connect)
            if leaving == .duringTheProbe { return }
            #expect(try await connection.response().status == 200)
            if leaving == .withinTheHello { try await connection.send("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}") }
        }
    }

    @Test func plainRequestsAndURLsOfAPinnedHostAreRefused() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let proxy = try await tunnels.proxy()
            for scheme in ["http", "https"] {
                let connection = try RawConnection(to: proxy)
                try await connection.send(
                    "GET \(scheme)://\(VerifiedTunnelBed.name)/ HTTP/1.1\r\nHost: \(VerifiedTunnelBed.name)\r\n\r\n")
                #expect(try await connection.response().status == 403)
            }
        }
    }
}
