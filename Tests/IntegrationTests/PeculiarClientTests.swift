import Foundation
import PinproxyTestAuthority
import Testing

/// Clients that deviate from the RFCs where nothing is ambiguous, and the answers to those that can't be served.
@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(5)))
struct PeculiarClientTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// lftp leaves Host out of CONNECT.
    @Test func aConnectWithoutHost() async throws {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send("CONNECT \(shared.authority) HTTP/1.1\r\n\r\n")
        #expect(try await connection.response().status == 200)
        // Any other request needs one.
        let other = try RawConnection(to: shared.proxy)
        try await other.send("GET \(shared.plainURL)/echo HTTP/1.1\r\n\r\n")
        #expect(try await other.response().status == 400)
    }

    /// wrk, hey, lynx, w3m and others put `host:port` into SNI.
    @Test(arguments: [("PORT", 200), ("1", 421)]) func aPortInSNI(port: String, status: Int) async throws {
        let name = "\(OriginBed.name):\(port == "PORT" ? "\(shared.originPort)" : port)"
        let run = try await shared.bed.run(
            [
                "timeout", "30", "openssl", "s_client", "-quiet", "-proxy",
                "\(shared.proxy.address):\(shared.proxy.port)", "-connect",
                shared.authority, "-servername", name,
            ], input: Array("GET /echo HTTP/1.1\r\nHost: \(shared.authority)\r\nConnection: close\r\n\r\n".utf8))
        #expect(run.output.hasPrefix("HTTP/1.1 \(status) "), "\(run)")
        if status == 421 {
            #expect(run.output.contains("for \(shared.authority) by CONNECT, but its SNI names \(name)"), "\(run)")
        }
    }

    private func handshake(_ shared: SharedBed, _ protocols: String) async throws -> Run {
        try await shared.bed.run([
            "timeout", "30", "openssl", "s_client", "-proxy", "\(shared.proxy.address):\(shared.proxy.port)",
            "-connect", shared.authority,
            "-servername", OriginBed.name, "-alpn", protocols,
        ])
    }

    @Test func whatAClientOfHTTP2IsTold() async throws {
        let chosen = try await handshake(shared, "h2,http/1.1")
        #expect(chosen.output.contains("ALPN protocol: h2\n"), "\(chosen)")
        // h2c is not supported.
        let none = try await handshake(shared, "h2c,h3")
        #expect(!none.succeeded)
        let line = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("ALPN") == true }
        #expect(line["cause"]?.contains("offers h2c, h3 by ALPN") == true, "\(line)")
        #expect(line["cause"]?.contains("it has to offer h2 or http/1.1 (proxy.http) too") == true, "\(line)")
        #expect(line["cause"]?.contains("action: verify-tunnel") == true, "\(line)")
    }

    @Test func whatItIsToldWhereHTTP2IsOff() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["http: [http/1.1]"]])
            let chosen = try await handshake(shared, "h2,http/1.1")
            #expect(chosen.output.contains("ALPN protocol: http/1.1\n"), "\(chosen)")
            let none = try await handshake(shared, "h2")
            #expect(!none.succeeded)
            let line = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("ALPN") == true }
            #expect(line["cause"]?.contains("offers h2 by ALPN") == true, "\(line)")
            #expect(line["cause"]?.contains("it has to offer http/1.1 (proxy.http) too") == true, "\(line)")
        }
    }

    @Test func tlsToThePlainPort() async throws {
        let run = try await shared.bed.run([
            "timeout", "30", "openssl", "s_client", "-connect", "\(shared.proxy.address):\(shared.proxy.port)",
        ])
        #expect(!run.succeeded)
        let line = try await shared.proxy.events.first("exchange") {
            $0["cause"]?.contains("uses TLS on this port") == true
        }
        #expect(line["status"] == "400" && line["cause"]?.contains("proxy.tls") == true, "\(line)")
    }

    @Test func thePageShowsTheProxysAddress() async throws {
        let plain = try await shared.bed.run(["curl", "-sS", "--noproxy", "*", shared.proxy.url + "/"])
        #expect(plain.output.contains("export HTTPS_PROXY=\(shared.proxy.url)\n"), "\(plain)")
        try await withTestBed { bed in
            let held = try TestRoots().chain("127.0.0.1")
            try bed.file("proxy/proxy.pem", held.pem)
            try bed.file("proxy/proxy.key", held.keyPEM)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["proxy": ["tls: {certificate: proxy.pem, private_key: proxy.key}"]])
            let run = try await bed.run(["curl", "-sSk", "--noproxy", "*", "https://127.0.0.1:\(proxy.port)/"])
            #expect(run.output.contains("export HTTPS_PROXY=https://127.0.0.1:\(proxy.port)\n"), "\(run)")
        }
    }
}
