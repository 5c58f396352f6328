import Testing

/// Clients that go silent: they send and read nothing more, and stay connected. The proxy closes the connection.
@Suite(.timeLimit(.minutes(5)))
struct SilentClientTests {
    enum Silence: String, CaseIterable, Sendable {
        case fromTheBeginning, withinTheHead, withinTheBody, beforeTheHandshake, withinTheHandshake
        case beforeTheTunnelsHandshake, withinTheTunnelsHandshake, beforeTheFrontsHandshake, withinTheFrontsHandshake
        case withinTheResponse

        /// The timeout under test, as short as a busy machine allows. The others keep their defaults.
        fileprivate var timeout: String {
            switch self {
            case .fromTheBeginning, .withinTheHead, .withinTheBody, .withinTheResponse: "idle_client: 2s"
            default: "tls_handshake: 1s"
            }
        }

        fileprivate var hasFront: Bool { self == .beforeTheFrontsHandshake || self == .withinTheFrontsHandshake }
    }

    /// A record header with a length that the bytes after it don't reach (RFC 8446 section 5.1).
    private static let partOfAHello: [UInt8] = [0x16, 3, 1, 0x02, 0, 1, 0, 1, 0xfc, 3, 3]

    @Test(arguments: Silence.allCases) func theConnectionIsClosed(_ silence: Silence) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let chain = try roots.chain("proxy.test")
            try bed.file("proxy/front.pem", chain.pem)
            try bed.file("proxy/front.key", chain.keyPEM)
            let shared = try await OriginBed.prepare(
                bed, pins: "hosts: [{match: tunnel.test, action: verify-tunnel}]\n",
                sections: [
                    "timeouts": [silence.timeout, "idle_upstream: 100ms"],
                    "proxy": silence.hasFront ? ["tls: {certificate: front.pem, private_key: front.key}"] : [],
                ], hosts: ["tunnel.test": "127.0.0.1"], roots: roots)
            let before = try await shared.footprint()
            let client = try RawConnection(to: shared.proxy)
            try await begin(silence, client, shared)
            try await shared.servesOthers()
            try await shared.hasGivenBack(since: before)
            // The client has been connected until here.
            _ = try await client.receiveUntilCut()
        }
    }

    private func begin(_ silence: Silence, _ client: RawConnection, _ shared: SharedBed) async throws {
        func connect(to host: String) async throws {
            let authority = "\(host):\(shared.originPort)"
            try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            #expect(try await client.response().status == 200)
        }
        let host = "\(OriginBed.name):\(shared.secondOriginPort)"
        switch silence {
        case .fromTheBeginning, .beforeTheFrontsHandshake: break
        case .withinTheHead: try await client.send("CONNECT \(shared.authority) HTT")
        case .withinTheBody:
            try await client.send(
                "POST http://\(host)/echo HTTP/1.1\r\nHost: \(host)\r\nContent-Length: 10\r\n\r\nfirst")
        case .beforeTheHandshake: try await connect(to: OriginBed.name)
        case .withinTheHandshake:
            try await connect(to: OriginBed.name)
            try await client.send(Self.partOfAHello)
        case .beforeTheTunnelsHandshake: try await connect(to: "tunnel.test")
        case .withinTheTunnelsHandshake:
            try await connect(to: "tunnel.test")
            try await client.send(Self.partOfAHello)
        case .withinTheFrontsHandshake: try await client.send(Self.partOfAHello)
        case .withinTheResponse:
            try await client.send("GET http://\(host)/large/100000000 HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(try await !client.receive(atMost: 100).isEmpty)
        }
    }
}
