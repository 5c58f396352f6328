import Testing

@Suite(.timeLimit(.minutes(5)))
struct PeakMemoryTests {
    /// Memory of clients that have sent 60 KiB of a head is returned when they leave. The last client stays, so that
    /// the freed memory lies among used blocks, where the C library would keep it.
    @Test(.disabled(if: Sanitizer.isOn, "its allocator keeps what is freed on purpose"))
    func whatAPeakTookIsGivenBack() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            let before = try shared.proxy.ownMemory()
            let head = "GET / HTTP/1.1\r\nX: " + String(repeating: "x", count: 60 << 10)
            var clients: [RawConnection] = []
            for _ in 0..<500 {
                let client = try RawConnection(to: shared.proxy)
                try await client.send(head)
                clients.append(client)
            }
            try await eventually("the peak") { try shared.proxy.ownMemory() > before + (25 << 20) }
            clients.removeFirst(499)
            try await eventually("the memory of the peak to be given back") {
                try shared.proxy.ownMemory() < before + (8 << 20)
            }
            withExtendedLifetime(clients) {}
        }
    }

    /// A client that got 200 and says nothing costs an OpenSSL object, some of ours, and no buffers.
    @Test(.disabled(if: Sanitizer.isOn, "its allocator pads what it gives"))
    func aConnectThatWaitsForItsHandshakeHoldsNoBuffers() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await NginxOrigin(
                in: bed, sites: [.init(name: "origin.test", chain: roots.chain("origin.test"))])
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["origin.test": "127.0.0.1"],
                sections: ["proxy": ["workers: 1"], "timeouts": ["tls_handshake: 60s"]])
            let connect = "CONNECT origin.test:\(origin.port) HTTP/1.1\r\nHost: origin.test:\(origin.port)\r\n\r\n"
            var clients: [RawConnection] = []
            func more(_ count: Int) async throws {
                for _ in 0..<count {
                    let client = try RawConnection(to: proxy)
                    try await client.send(connect)
                    #expect(try await client.response().status == 200)
                    clients.append(client)
                }
            }
            // Allocates what is made once, and what the pool of buffers keeps.
            try await more(50)
            let before = try proxy.ownMemory()
            try await more(300)
            let each = try (proxy.ownMemory() - before) / 300
            // OpenSSL 3.5 keeps the keys of a post-quantum exchange for as long as the connection to the origin.
            #expect(each < (Probe.hasPostQuantum ? 48 : 40) << 10, "\(each) bytes each")
            withExtendedLifetime(clients) {}
        }
    }
}
