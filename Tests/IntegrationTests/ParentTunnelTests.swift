import Testing

/// Tunnels through the parent proxy that their client abandons, and bytes that arrive with the parent's answer.
@Suite(.timeLimit(.minutes(5)))
struct ParentTunnelTests {
    enum Abandoned: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case afterItsEnd = "ends its side, and resets"
        case afterEarlyBytes = "sends more than is read ahead, and resets"

        var testDescription: String { rawValue }
    }

    /// A half-open tunnel in the pool was once taken for a plain connection. The parent's password then reached the
    /// origin with the next client's request.
    @Test(arguments: Abandoned.allCases)
    func aTunnelWhoseClientIsGoneCarriesNobodyElsesRequest(_ client: Abandoned) async throws {
        try await withTestBed { bed in
            let parent = try await PythonPeer(in: bed, script: "parent.py", ["--hold"])
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - match: \(OriginBed.name)\n    action: tunnel\n", trust: nil,
                hosts: [OriginBed.name: "127.0.0.1"],
                sections: [
                    "proxy": ["workers: 1"], "upstream": ["parent: http://ada:secret@127.0.0.1:\(parent.port)"],
                ])
            let authority = "\(OriginBed.name):\(origin.port)"
            do {
                let gone = try RawConnection(to: proxy)
                try await gone.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
                _ = try await parent.events.first("connect")
                switch client {
                case .afterItsEnd: try await gone.finishSending()
                case .afterEarlyBytes: try await gone.send([UInt8](repeating: 0x2e, count: 66 << 10))
                }
                try await gone.resetOnClose()
            }
            #expect(try await get("/release", at: parent.port).status == 200)
            _ = try await parent.events.first("answered")

            let next = try RawConnection(to: proxy)
            try await next.send(
                "GET http://\(authority)/echo HTTP/1.1\r\nHost: \(authority)\r\nCookie: next=client\r\n\r\n")
            let answer = try await next.response()
            #expect(answer.body == "parent\n", "\(answer)")
            let request = try await parent.events.first("request")
            #expect(request["lines"]?.contains("Proxy-Authorization: Basic YWRhOnNlY3JldA==") == true, "\(request)")
            #expect(origin.events.all("request").isEmpty, "\(origin.events.all)")
        }
    }

    private func get(_ path: String, at port: UInt16) async throws -> RawResponse {
        let control = try RawConnection(port: port)
        try await control.send("GET \(path) HTTP/1.1\r\nHost: parent\r\n\r\n")
        return try await control.response()
    }

    @Test func aServerThatSpeaksFirstIsHeardThroughATunnel() async throws {
        try await withTestBed { bed in
            let parent = try await PythonPeer(in: bed, script: "parent.py", ["--banner", "SSH-2.0-OpenSSH_9.2\r\n"])
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - match: 192.0.2.7\n    action: tunnel\n", trust: nil,
                sections: ["upstream": ["parent: http://127.0.0.1:\(parent.port)"]])
            let client = try RawConnection(to: proxy)
            try await client.send("CONNECT 192.0.2.7:22 HTTP/1.1\r\nHost: 192.0.2.7:22\r\n\r\n")
            let answer = try await client.response()
            #expect(answer.status == 200, "\(answer)")
            var heard = ""
            while heard.utf8.last != UInt8(ascii: "\n") {
                let some = try await client.receive()
                try #require(!some.isEmpty, "ended after \(heard)")
                heard += String(decoding: some, as: UTF8.self)
            }
            #expect(heard == "SSH-2.0-OpenSSH_9.2\r\n")
            // If the proxy itself speaks TLS, no byte may precede the ClientHello.
            let intercepted = try await proxy.connect(to: "192.0.2.8:443")
            #expect(intercepted.status == 502, "\(intercepted)")
        }
    }
}
