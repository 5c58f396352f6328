import Foundation
import Testing

/// PROXY headers, version 1 and 2, on an address that expects them.
@Suite(.timeLimit(.minutes(5)))
struct ProxyProtocolTests {
    private struct Bed {
        let shared: SharedBed
        /// Where headers come first.
        let address = LoopbackAddress.network() + ".1"
        let port: UInt16

        init(
            _ bed: TestBed, from senders: String = "127.0.0.1", pins: String = "hosts: []\n", _ proxy: [String] = []
        ) async throws {
            port = try bed.port()
            shared = try await OriginBed.prepare(
                bed, pins: pins,
                sections: [
                    "proxy": [
                        "listen: [127.0.0.1:0, {address: \(address):\(port), proxy_protocol: [\(senders)]}]",
                        "workers: 1",
                        "allow_clients: [127.0.0.1, 192.0.2.0/24, \"2001:db8::/32\"]",
                    ] + proxy,
                    "upstream": ["allow_addresses: [loopback]"],
                ])
        }

        var request: String {
            "GET \(shared.plainURL)/echo HTTP/1.1\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n\r\n"
        }

        func ask(_ header: [UInt8]) async throws -> RawResponse {
            let client = try RawConnection(port: port, at: address)
            try await client.send(header + request.utf8)
            return try await client.response()
        }

        func ask(_ header: String) async throws -> RawResponse { try await ask(Array(header.utf8)) }
    }

    private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    private static let binary: [UInt8] =
        signature + [0x21, 0x11, 0, 15, 192, 0, 2, 9, 192, 0, 2, 2, 0x10, 0x01, 0x01, 0xBB, 0xEE, 0, 0]

    @Test func theAddressIsTheClients() async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed)
            for (header, client) in [
                (Array("PROXY TCP4 192.0.2.7 192.0.2.2 4711 443\r\n".utf8), "192.0.2.7:4711"),
                (Self.binary, "192.0.2.9:4097"),
                (Array("PROXY TCP6 2001:db8::7 ::1 4711 443\r\n".utf8), "[2001:db8::7]:4711"),
            ] {
                #expect(try await front.ask(header).status == 200)
                let line = try await front.shared.proxy.events.first("exchange") { $0["client"] == client }
                // Not a program of this machine, though the connection comes over loopback.
                #expect(line["client_uid"] == nil, "\(line)")
            }
            // allow_clients applies to it.
            let refused = try await front.ask("PROXY TCP4 198.51.100.7 192.0.2.2 4711 443\r\n")
            #expect(refused.status == 403 && refused.reason.contains("198.51.100.7"), "\(refused)")
            // Byte by byte, and then another request over the same connection.
            let slow = try RawConnection(port: front.port, at: front.address)
            for byte in Self.binary + front.request.utf8.prefix(3) { try await slow.send([byte]) }
            try await slow.send(Array(front.request.utf8.dropFirst(3)))
            #expect(try await slow.response().status == 200)
            try await slow.send(front.request)
            #expect(try await slow.response().status == 200)
        }
    }

    /// An accepted client is served, though its header comes only after the signal.
    @Test func aStopWaitsForTheHeader() async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed)
            let header = "PROXY TCP4 192.0.2.7 192.0.2.2 4711 443\r\n"
            let client = try RawConnection(port: front.port, at: front.address)
            // Accepted after it, by the same thread.
            #expect(try await front.ask(header).status == 200)
            let proxy = front.shared.proxy
            proxy.process.send(signal: SIGTERM)
            try await eventually("the port to be closed") { (try? RawConnection(to: proxy)) == nil }
            try await client.send(header + front.request)
            #expect(try await client.response().status == 200)
            #expect(try await proxy.process.ending() == .exited(0))
        }
    }

    /// A load balancer that speaks for itself, or doesn't say for whom, counts by its own address.
    @Test func theSendersAddressCountsWhereNoneIsSaid() async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed)
            for header in [
                Array("PROXY UNKNOWN\r\n".utf8), Self.signature + [0x20, 0, 0, 0], Self.signature + [0x21, 0, 0, 0],
            ] {
                #expect(try await front.ask(header).status == 200)
            }
            _ = try await front.shared.proxy.events.first("exchange", number: 3)
            let lines = front.shared.proxy.events.all("exchange")
            #expect(
                lines.allSatisfy { $0["client"]?.hasPrefix("127.0.0.1:") == true && $0["client_uid"] == nil },
                "\(lines)")
        }
    }

    /// A header can name loopback: that makes no client a local program.
    @Test func aNamedLoopbackAddressIsNotThisMachine() async throws {
        try await withTestBed { bed in
            let front = try await Bed(
                bed, pins: "hosts: [{match: \(OriginBed.name), clients: {users: [\(geteuid())]}}]\n")
            let refused = try await front.ask("PROXY TCP4 127.0.0.1 127.0.0.1 4711 443\r\n")
            #expect(refused.status == 403 && refused.body.contains("by way of a load balancer"), "\(refused)")
            let direct = try RawConnection(to: front.shared.proxy)
            try await direct.send(front.request)
            #expect(try await direct.response().status == 200)
        }
        try await withTestBed { bed in
            let front = try await Bed(bed)
            let text = try bed.contents("proxy/pinproxy.yaml").replacing("  allow_addresses: [loopback]\n", with: "")
            try bed.file("proxy/pinproxy.yaml", text)
            #expect(try await front.shared.proxy.reload().name == "config.reload")
            // Services on loopback rely on being unreachable from outside.
            #expect(try await front.ask("PROXY TCP4 127.0.0.1 127.0.0.1 4711 443\r\n").status == 403)
        }
    }

    @Test(arguments: [
        ("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "no PROXY header comes first"),
        ("PROXY TCP4 nowhere 192.0.2.2 1 2\r\n", "an address is not one of TCP4"),
        ("PROXY UNKNOWN " + String(repeating: "x", count: 200), "at most 107 bytes"),
        ("\u{16}\u{03}\u{01}\u{00}", "no PROXY header comes first"),
    ]) func whatIsNoHeaderIsCutOff(_ text: String, _ cause: String) async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed)
            let client = try RawConnection(port: front.port, at: front.address)
            try await client.send(text)
            #expect(try await client.receiveUntilCut().bytes.isEmpty)
            let line = try await front.shared.proxy.events.first("exchange") { $0["cause"] != nil }
            #expect(line["cause"]?.contains(cause) == true, "\(line)")
            #expect(try await front.ask("PROXY UNKNOWN\r\n").status == 200)
        }
    }

    /// Half a header, and nothing more.
    @Test func whoSendsNoWholeHeaderIsNotWaitedFor() async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed)
            let client = try RawConnection(port: front.port, at: front.address)
            try await client.send(Array(Self.binary.prefix(20)))
            let silent = try RawConnection(port: front.port, at: front.address)
            for connection in [client, silent] { #expect(try await connection.receiveUntilCut().bytes.isEmpty) }
            let line = try await front.shared.proxy.events.first("exchange") { $0["cause"] != nil }
            #expect(line["cause"] == "no complete PROXY header came within 5 seconds", "\(line)")
            let gone = try RawConnection(port: front.port, at: front.address)
            try await gone.send("PROXY TC")
            try await gone.finishSending()
            #expect(try await gone.receiveUntilCut().bytes.isEmpty)
        }
    }

    @Test func othersHeadersCountForNothing() async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed, from: "192.0.2.1")
            let client = try RawConnection(port: front.port, at: front.address)
            try? await client.send("PROXY TCP4 192.0.2.7 192.0.2.2 4711 443\r\n" + front.request)
            #expect(try await client.receiveUntilCut().bytes.isEmpty)
            let line = try await front.shared.proxy.events.first("exchange") {
                $0["cause"]?.contains("proxy_protocol") == true
            }
            #expect(line["client"]?.hasPrefix("127.0.0.1:") == true, "\(line)")
            // Where none is expected, a header is a bad request.
            let direct = try RawConnection(to: front.shared.proxy)
            try await direct.send("PROXY TCP4 192.0.2.7 192.0.2.2 4711 443\r\n" + front.request)
            #expect(try await direct.response().status == 400)
        }
    }

    /// The header precedes TLS on the proxy's own port.
    @Test func tlsComesAfterIt() async throws {
        try await withTestBed { bed in
            let front = try TestRoots("Front")
            let chain = try front.chain("proxy.test")
            try bed.file("proxy/front.pem", chain.pem)
            try bed.file("proxy/front.key", chain.keyPEM)
            let headers = try await Bed(bed, ["tls: {certificate: front.pem, private_key: front.key}"])
            let run = try await bed.run([
                "curl", "-sS", "--haproxy-protocol", "--noproxy", "*", "--connect-to",
                "proxy.test:\(headers.port):\(headers.address):\(headers.port)", "--cacert",
                front.write(to: bed, name: "front-roots"),
                "https://proxy.test:\(headers.port)/",
            ])
            // curl speaks for itself; it asks the proxy as if it were a server.
            #expect(run.output.contains("HTTPS_PROXY"), "\(run)")
        }
    }

    @Test func aReloadTurnsItOn() async throws {
        try await withTestBed { bed in
            let front = try await Bed(bed)
            let text = try bed.contents("proxy/pinproxy.yaml")
            try bed.file(
                "proxy/pinproxy.yaml",
                text.replacing(
                    "{address: \(front.address):\(front.port), proxy_protocol: [127.0.0.1]}",
                    with: "\(front.address):\(front.port)"))
            #expect(try await front.shared.proxy.reload().name == "config.reload")
            #expect(try await front.ask("").status == 200)
            try bed.file("proxy/pinproxy.yaml", text)
            #expect(try await front.shared.proxy.reload().name == "config.reload")
            #expect(try await front.ask("PROXY UNKNOWN\r\n").status == 200)
            let client = try RawConnection(port: front.port, at: front.address)
            try await client.send(front.request)
            #expect(try await client.receiveUntilCut().bytes.isEmpty)
        }
    }
}
