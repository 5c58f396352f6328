import Foundation
import PinproxyTestAuthority
import Synchronization
import Testing

/// `action: verify-tunnel`: how it looks to real programs, and which chains pass.
@Suite(.timeLimit(.minutes(5)))
struct VerifiedTunnelTests {
    // MARK: What passes

    @Test(arguments: [("1.2", "in-band"), ("1.3", "probe (weaker)")])
    func aPinnedOriginIsReachedAndItsOwnCertificateSeen(version: String, verification: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let run = try await tunnels.curl(via: proxy, to: origin.port, "--tlsv\(version)", "--tls-max", version)
            #expect(run.output == "handshake 2", "\(run)")
            let line = try await proxy.tunnelLine()
            #expect(line["verification"] == verification && line["status"] == "200", "\(line)")
            #expect(line["entry"] == VerifiedTunnelBed.name, "\(line)")
            // curl closes while session tickets are still unread: the kernel then sends a reset.
            #expect([nil, "client: Connection reset by peer"].contains(line["cause"]), "\(line)")
            #expect(line["pin"] == (try await tunnels.pinned.pin(bed)), "\(line)")
        }
    }

    @Test func requestsBringsItsOwnTrust() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let environment = ["HTTPS_PROXY": proxy.url, "REQUESTS_CA_BUNDLE": bed.path("roots.pem")]
            let run = try await bed.run(
                [
                    PythonPeer.pythonWithPackages, PythonPeer.path("fetch.py"), "requests",
                    "https://\(VerifiedTunnelBed.name):\(origin.port)/",
                ], environment: environment)
            #expect(run.output.hasPrefix("handshake"), "\(run)")
        }
    }

    /// The client's certificate is the client's affair: an origin that requires one sees it, end to end.
    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func aClientProvesItselfEndToEnd(version: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let authority = try TestRoots("Client")
            let client = try authority.leaf("client.test") {
                $0.commonName = "the client"
                $0.extendedKeyUsage = []
            }
            try bed.file("client-root.pem", authority.root.pem)
            let certificate = try bed.file("client.pem", ServedChain(client).pem)
            let key = try bed.file("client.key", client.keyPEM)
            let server = try await tunnels.openSSLServer(
                version, "-Verify", "3", "-verify_return_error", "-CAfile", bed.path("client-root.pem"))
            let proxy = try await tunnels.proxy()
            let run = try await tunnels.openSSLClient(
                via: proxy, to: server.port, version, "-cert", certificate, "-key", key, "-cert_chain", certificate)
            #expect(run.output.contains("HTTP/1.0 200 ok"), "\(run)")
            #expect(run.output.contains("Subject: CN=the client"), "\(run)")
            let line = try await proxy.tunnelLine()
            #expect(line["verification"] == (version == "-tls1_2" ? "in-band" : "probe (weaker)"), "\(line)")

            // Without it the origin's own alert comes through.
            let without = try await tunnels.openSSLClient(via: proxy, to: server.port, version)
            #expect(!without.output.contains("200 ok"), "\(without)")
            #expect(without.description.contains("alert"), "\(without)")
        }
    }

    /// No certificate is shown: a probe's verdict decides, also that of an origin that wants the client's.
    @Test(arguments: [["-tls1_2"], ["-tls1_2", "-no_ticket"], ["-tls1_3"]])
    func aSessionIsResumed(options: [String]) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let server = try await OpenSSLServer(in: bed, chain: ServedChain(tunnels.pinned), ["-www"] + options)
            let proxy = try await tunnels.proxy()
            let first = try await tunnels.openSSLClient(via: proxy, to: server.port, "-sess_out", "session.pem")
            #expect(first.output.contains("\nNew, "), "\(first)")
            let second = try await tunnels.openSSLClient(via: proxy, to: server.port, "-sess_in", "session.pem")
            #expect(second.output.contains("\nReused, "), "\(second)")
            #expect(second.output.contains("HTTP/1.0 200 ok"), "\(second)")
            // Two workers log it in any order.
            _ = try await proxy.events.first("exchange", number: 2)
            let verified = proxy.events.all("exchange").map { $0["verification"] ?? "" }.sorted()
            #expect(
                verified == [options[0] == "-tls1_2" ? "in-band" : "probe (weaker)", "probe (weaker)"], "\(verified)")
        }
    }

    @Test func aResumedSessionOfAClientWithACertificatePasses() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let client = try tunnels.roots.leaf("client.test") { $0.extendedKeyUsage = [] }
            let certificate = try bed.file("client.pem", ServedChain(client).pem)
            let key = try bed.file("client.key", client.keyPEM)
            let server = try await tunnels.openSSLServer(
                "-tls1_2", "-Verify", "3", "-verify_return_error", "-CAfile", bed.path("roots.pem"), "-context", "a")
            let proxy = try await tunnels.proxy()
            for (option, words) in [("-sess_out", "\nNew, "), ("-sess_in", "\nReused, ")] {
                let run = try await tunnels.openSSLClient(
                    via: proxy, to: server.port, option, "session.pem", "-cert", certificate, "-key", key,
                    "-cert_chain",
                    certificate)
                #expect(run.output.contains(words) && run.output.contains("HTTP/1.0 200 ok"), "\(run)")
            }
        }
    }

    @Test func aServerThatWantsAnotherGroupGetsASecondHello() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let server = try await tunnels.openSSLServer("-tls1_3", "-groups", "P-384")
            let proxy = try await tunnels.proxy()
            let run = try await tunnels.openSSLClient(via: proxy, to: server.port, "-groups", "P-256:P-384")
            #expect(run.output.contains("HTTP/1.0 200 ok"), "\(run)")
            #expect(run.output.contains("Temp Key: ECDH, secp384r1"), "\(run)")
            let line = try await proxy.tunnelLine()
            #expect(line["verification"] == "probe (weaker)" && line["cause"] == nil, "\(line)")
        }
    }

    @Test func earlyDataArrivesOnceTheOriginIsAccepted() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let request = try bed.file("request", "GET /hello HTTP/1.0\r\n\r\n")
            let nginx = try await NginxOrigin(
                in: bed,
                sites: [
                    .init(
                        name: VerifiedTunnelBed.name, chain: ServedChain(tunnels.pinned),
                        directives: "ssl_early_data on;")
                ])
            let proxy = try await tunnels.proxy()
            _ = try await tunnels.openSSLClient(via: proxy, to: nginx.port, "-sess_out", "session.pem")
            let run = try await tunnels.openSSLClient(
                via: proxy, to: nginx.port, "-sess_in", "session.pem", "-early_data", request)
            #expect(run.output.contains("Early data was accepted"), "\(run)")
            #expect(run.output.contains("HTTP/1.1 200 OK"), "\(run)")
        }
    }

    /// Not every client requests stapling. The probe's response is about the same certificate.
    @Test(arguments: [["-tls1_2", "-status"], ["-tls1_2"], ["-tls1_3"]])
    func whatIsStapledIsJudged(options: [String]) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let server = try await tunnels.stapling()
            let proxy = try await tunnels.proxy(more: "ocsp: require")
            let run = try await tunnels.openSSLClient(via: proxy, to: server.port, options)
            #expect(run.output.contains("HTTP/1.0 200 ok"), "\(run)")
        }
    }

    @Test(arguments: ["1.2", "1.3"], [["--pieces", "1"], ["--pipelined"], ["--pipelined", "--sni", ""]])
    func aHelloMayComeInAnyWay(version: String, options: [String]) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, options + ["--tls", version])
            #expect(result["body"]?.hasPrefix("handshake") == true, "\(result)")
        }
    }

    /// Where it is verified, and where TLS is opened.
    @Test(
        arguments: VerifiedTunnelBed.longHellos + [["--pipelined", "--joined"] + VerifiedTunnelBed.longOffer],
        [true, false])
    func aLongHelloMayComeInParts(_ options: [String], isTunnel: Bool) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy =
                isTunnel
                ? try await tunnels.proxy()
                : try await ProxyProcess(
                    in: bed, trust: bed.path("roots.pem"), hosts: [VerifiedTunnelBed.name: "127.0.0.1"])
            let trust = isTunnel ? [] : ["--trust", proxy.authority]
            let result = try await tunnels.client(via: proxy, to: origin.port, options + trust)
            #expect(result["hello"].flatMap { Int($0) } ?? 0 > 2000, "\(result)")
            #expect(result["body"]?.hasPrefix("handshake") == true, "\(result)")
        }
    }

    @Test(arguments: ["1.2", "1.3"])
    func aFlightMayComeInSmallPieces(version: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned,pieces=1")
            let proxy = try await tunnels.proxy()
            let result = try await tunnels.client(via: proxy, to: origin.port, "--tls", version)
            #expect(result["body"]?.hasPrefix("handshake") == true, "\(result)")
        }
    }

    @Test func aParentProxyIsAskedForTheProbeToo() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let parent = try await ProxyProcess(
                in: bed, folder: "parent", pins: "defaults: {action: tunnel}\n", trust: nil,
                hosts: [VerifiedTunnelBed.name: "127.0.0.1"])
            let proxy = try await ProxyProcess(
                in: bed, pins: tunnels.entry(), trust: bed.path("roots.pem"),
                sections: ["upstream": ["parent: http://\(parent.address):\(parent.port)"]])
            let run = try await tunnels.curl(via: proxy, to: origin.port)
            #expect(run.output == "handshake 2", "\(run)")
            // The probe, and the tunnel.
            _ = try await parent.events.first("exchange") { [count = Counter()] _ in count.next() == 2 }
        }
    }

    @Test func hostsWithoutAnEntryMayBeVerifiedToo() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await ProxyProcess(
                in: bed, pins: "defaults: {action: verify-tunnel}\n", trust: bed.path("roots.pem"),
                hosts: [VerifiedTunnelBed.name: "127.0.0.1", "wrong.test": "127.0.0.1"])
            #expect(try await tunnels.curl(via: proxy, to: origin.port).output == "handshake 2")
            let answer = try await proxy.connect(to: "wrong.test:\(origin.port)")
            Expected.refused(502, "wrong host name").check(answer, host: "wrong.test")
        }
    }

    // MARK: The probe's minute

    @Test func theProbesVerdictIsRemembered() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            for body in ["handshake 2", "handshake 3"] {
                #expect(try await tunnels.curl(via: proxy, to: origin.port).output == body)
            }
            // Other application protocols: an origin may choose its certificate by them.
            let other = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.3", "--alpn", "http/1.1")
            #expect(other["body"] == "handshake 4", "\(other)")
            let hellos = origin.events.all("handshake").map { $0["alpn"] ?? "" }
            #expect(hellos.count == 5, "\(hellos)")
            let again = try await tunnels.client(via: proxy, to: origin.port, "--tls", "1.3", "--alpn", "http/1.1")
            #expect(again["body"] == "handshake 6", "\(again)")
        }
    }

    /// A reload verifies the chain of an open tunnel again.
    @Test func aReloadEndsAnOpenTunnelWhoseChainItWouldRefuse() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let open = try await bed.start(
                [
                    "openssl", "s_client", "-proxy", "\(proxy.address):\(proxy.port)", "-connect",
                    "\(VerifiedTunnelBed.name):\(origin.port)", "-servername", VerifiedTunnelBed.name, "-CAfile",
                    bed.path("roots.pem"), "-ign_eof",
                ])
            _ = try await origin.events.first("handshake") { $0["handshake"] == "2" || $0["handshake"] == "3" }
            try bed.file("proxy/pins.yaml", try await tunnels.entry(pin: .wrongPin))
            #expect(try await proxy.reload().name == "config.reload")
            // The earlier verdict belonged to another policy.
            let refused = try await proxy.connect(to: "\(VerifiedTunnelBed.name):\(origin.port)")
            #expect(refused.status == 502, "\(refused)")
            let line = try await proxy.events.first("exchange") { $0["status"] == "200" }
            #expect(line["cause"]?.hasPrefix("after a reload: ") == true, "\(line)")
            _ = try await open.ending()
        }
    }

    /// The old policy allowed the tunnel, but nothing has flowed yet.
    @Test(arguments: ["1.2", "1.3"])
    func aReloadBeforeTheHelloCounts(version: String) async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned")
            let proxy = try await tunnels.proxy()
            let hello = try await tunnels.client(
                via: proxy, to: origin.port, "--hello", "--tls", version, "--alpn", "h2,http/1.1")
            let connection = try RawConnection(to: proxy)
            let authority = "\(VerifiedTunnelBed.name):\(origin.port)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            try bed.file("proxy/pins.yaml", try await tunnels.entry(pin: .wrongPin))
            #expect(try await proxy.reload().name == "config.reload")
            let digits = try #require(hello["bytes"]).compactMap(\.hexDigitValue)
            try await connection.send(
                stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
            // bad_certificate
            #expect(try await connection.receiveAll() == [21, 3, 3, 0, 2, 2, 42])
            let event = try await proxy.events.first("pin.mismatch")
            #expect(event["verification"] == (version == "1.2" ? "in-band" : "probe (weaker)"), "\(event)")
        }
    }

    @Test func aReloadBeforeTheSecondHelloCounts() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            // ServerHellos of TLS 1.3: the first by its random a HelloRetryRequest.
            let retry = "cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c"
            let answers = [retry, String(repeating: "07", count: 32)].map {
                "1603030032" + "0200002e" + "0303" + $0 + "00" + "1301" + "00" + "0006" + "002b00020304"
            }
            let origin = try await tunnels.origin("chain=pinned", "raw=\(answers.joined())", "chain=pinned")
            let proxy = try await tunnels.proxy()
            let hello = try await tunnels.client(via: proxy, to: origin.port, "--hello", "--alpn", "h2,http/1.1")
            let connection = try RawConnection(to: proxy)
            let authority = "\(VerifiedTunnelBed.name):\(origin.port)"
            try await connection.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            let digits = try #require(hello["bytes"]).compactMap(\.hexDigitValue)
            let bytes = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
            try await connection.send(bytes)
            #expect(try await connection.receive().count == 55)
            try bed.file("proxy/pins.yaml", try await tunnels.entry(pin: .wrongPin))
            #expect(try await proxy.reload().name == "config.reload")
            try await connection.send(bytes)
            // bad_certificate, and nothing of the ServerHello.
            #expect(try await connection.receiveAll() == [21, 3, 3, 0, 2, 2, 42])
        }
    }
}

/// Counts the events that a watcher was asked about.
final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
