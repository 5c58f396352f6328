import Foundation
import PinproxyTestAuthority
import Testing

/// Origins send certificates that are expensive to parse. None is parsed, and no other client waits.
@Suite(.timeLimit(.minutes(5)))
struct CostlyCertificateTests {
    /// A leaf, followed by certificates with explicit curve parameters: 135 fill a message of 100 KiB.
    private static func chain(_ leaf: HeldCertificate, _ roots: TestRoots, count: Int = 135) throws -> ServedChain {
        let costly = try (0..<count).map { number in
            try roots.root.issue(
                .intermediate("\(number)").validToday.with {
                    $0.publicKeyDER = CostlyCertificates.explicitCurve()
                    $0.subjectKeyIdentifier = .none
                    $0.authorityKeyIdentifier = .none
                    $0.signature = [1]
                })
        }
        return ServedChain(leaf, followedBy: costly)
    }

    private static let words = "certificates; the limit is 32"

    @Test func anInterceptedHost() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            try bed.file("costly.pem", Self.chain(roots.leaf("costly.test"), roots).pem)
            let costly = try await PythonPeer(in: bed, script: "tunnel_origin.py", ["copied=costly"])
            let other = try await PythonPeer.origin(in: bed, chain: roots.chain("other.test"))
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["costly.test": "127.0.0.1", "other.test": "127.0.0.1"],
                sections: ["proxy": ["workers: 1"]])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        let answer = try await proxy.connect(to: "costly.test:\(costly.port)")
                        Expected.refused(502, Self.words).check(answer, host: "costly.test")
                        #expect(answer.reason == "Certificate of costly.test not accepted")
                        #expect(answer["Proxy-Status"]?.contains("error=tls_certificate_error") == true, "\(answer)")
                    }
                }
                // The one worker serves others meanwhile.
                group.addTask {
                    let answer = try await proxy.connect(to: "other.test:\(other.port)")
                    #expect(answer.status == 200)
                }
                try await group.waitForAll()
            }
            let event = try await proxy.events.first("trust.failure")
            #expect(
                event["host"] == "costly.test" && event["cause"] == "the peer sent 136 certificates; the limit is 32")
        }
    }

    /// In TLS 1.3 the message is encrypted: a real server sends it.
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func aFewOfThem(version: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let leaf = try roots.leaf("costly.test")
            let costly = try roots.root.issue(
                .intermediate("Costly").validToday.with { $0.publicKeyDER = CostlyCertificates.explicitCurve() })
            let server = try await OpenSSLServer(
                in: bed, chain: ServedChain(leaf, followedBy: [roots.intermediate, costly]), ["-www", version])
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["costly.test": "127.0.0.1"])
            let words = "from the peer is refused: its key has explicit curve parameters"
            let answer = try await proxy.connect(to: "costly.test:\(server.port)")
            Expected.refused(502, words).check(answer, host: "costly.test")
            let explain = try await bed.run(
                [
                    ProxyProcess.executable, "explain", "costly.test:\(server.port)", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ],
                environment: ProxyProcess.environment(in: bed))
            #expect(!explain.succeeded && explain.output.contains(words), "\(explain)")
            try bed.file("proxy/pins.yaml", "hosts: [{match: \"costly.test:\(server.port)\"}]\n")
            let lint = try await bed.run(
                [ProxyProcess.executable, "lint", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(lint.output.contains("would fail now: ") && lint.output.contains("[refused-now]"), "\(lint)")
        }
    }

    /// The probe gets a good chain; the client's handshake carries another one.
    @Test func aVerifiedTunnel() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            try bed.file("costly.pem", Self.chain(tunnels.pinned, tunnels.roots, count: 100).pem)
            let origin = try await tunnels.origin("chain=pinned", "forged=costly,key=pinned", "copied=costly")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.2")
            #expect(result["status"] == "200" && result["error"] == "SSLV3_ALERT_BAD_CERTIFICATE", "\(result)")
            let event = try await proxy.events.first("trust.failure")
            #expect(event["verification"] == "in-band" && event["cause"]?.contains(Self.words) == true, "\(event)")
            let line = try await proxy.tunnelLine()
            #expect(line["error"] == "tls_certificate_error" && line["bytes_down"] == "0", "\(line)")
            // A probe that gets it is refused at CONNECT.
            let answer = try await proxy.connect(to: "\(VerifiedTunnelBed.name):\(origin.port)")
            Expected.refused(502, Self.words).check(answer, host: VerifiedTunnelBed.name)
            let second = try await proxy.events.first("trust.failure", number: 2)
            #expect(second["verification"] == "probe (weaker)", "\(second)")
        }
    }

    /// Of a chain on disk the error names file, line and number.
    @Test func files() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let chain = try Self.chain(roots.leaf("costly.test"), roots)
            let file = try bed.file("costly.pem", chain.pem)
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: roots.write(to: bed))
            let line =
                try #require(chain.pem.components(separatedBy: "-----END").first).split(separator: "\n").count + 2
            let words = "\(file): line \(line): certificate 2 in it is broken: its key has explicit curve parameters"
            for arguments in [["explain", "costly.test", "--chain", file], ["pin", "--from", file]] {
                let run = try await bed.run(
                    [ProxyProcess.executable] + arguments
                        + (arguments[0] == "pin" ? [] : ["--config", bed.path("proxy/pinproxy.yaml")]),
                    environment: ProxyProcess.environment(in: bed))
                #expect(!run.succeeded && run.errors.contains(words), "\(run)")
            }
            let der = try bed.file(
                "costly.der",
                roots.root.issue(.leaf("costly.test").with { $0.publicKeyDER = CostlyCertificates.compressedP256 }).der)
            let pin = try await bed.run([ProxyProcess.executable, "pin", "--from", der])
            #expect(
                !pin.succeeded
                    && pin.errors.contains("costly.der: the certificate is refused: its key is a compressed point"),
                "\(pin)")
            // As roots of upstreams.
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: file)
            let check = try await bed.run(
                [ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(check.errors.contains("trust: \(words)"), "\(check)")
        }
    }
}
