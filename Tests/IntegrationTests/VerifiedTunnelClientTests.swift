import PinproxyTestAuthority
import Testing

/// `action: verify-tunnel`: what a client may not send after 200, and clients that leave.
@Suite(.timeLimit(.minutes(5)))
struct VerifiedTunnelClientTests {
    /// With a port it is not a host name, and a server may present another host's certificate for it.
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
            // The origin has seen the probe's hello, not the client's.
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
                    authority, "-servername", name, "-CAfile", bed.path("roots.pem"), "-verify_return_error",
                    "-ign_eof",
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
        ("GET / HTTP/1.1\r\n\r\n", "does not speak TLS"),
        ("\u{16}\u{3}\u{1}\u{0}\u{4}\u{2}\u{0}\u{0}\u{0}", "malformed ClientHello"),
        ("\u{16}\u{3}\u{1}\u{0}\u{0}", "malformed ClientHello"), ("\u{16}\u{3}\u{1}", "ended before"),
        ("", "ended before"),
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

    /// Clients that leave at any moment leave nothing open, and the proxy serves the next.
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
                // Another policy, so that a probe is needed.
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
