import Testing

/// A name server that is silent, trickles or vanishes: over UDP, or over TCP after a truncated answer over UDP.
@Suite(.timeLimit(.minutes(5)), .enabled(if: NetworkBed.isAvailable, "needs root, to mount and to listen on port 53"))
struct SilentNameServerTests {
    @Test(arguments: [
        ("udp", "silence", 504, "dns_timeout"), ("tcp", "silence", 504, "dns_timeout"),
        ("tcp", "trickle", 504, "dns_timeout"),
        ("udp", "vanish", 502, "dns_error"), ("tcp", "vanish", 502, "dns_error"),
    ])
    func theClientIsTold(_ over: String, _ behaviour: String, _ status: Int, _ error: String) async throws {
        try await withTestBed { bed in
            let address = LoopbackAddress.network() + ".53"
            let server = try await PythonPeer(
                in: bed, script: "silent_names.py", ["--listen", address, "--over", over, "--then", behaviour])
            let roots = try TestRoots()
            let plain = try await PythonPeer.origin(in: bed, chain: nil)
            try bed.file("resolv.conf", "nameserver \(address)\n", mode: 0o644)
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: [OriginBed.name: "127.0.0.1"],
                sections: ["timeouts": ["connect: 1s", "idle_upstream: 100ms"]],
                launcher: [
                    "unshare", "--mount", "/bin/sh", "-c",
                    "mount --bind '\(bed.path("resolv.conf"))' /etc/resolv.conf && exec \"$0\" \"$@\"",
                ])
            let shared = SharedBed(
                bed: bed, proxy: proxy, originPort: plain.port, secondOriginPort: plain.port, plainOrigin: plain)
            let before = try await shared.footprint()
            let clients = try (1...20).map { _ in try RawConnection(to: proxy) }
            for (number, client) in clients.enumerated() {
                let authority = "name\(number).test:443"
                try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            }
            _ = try await server.events.first("silent")
            try await shared.servesOthers()
            for client in clients {
                let answer = try await client.response()
                let says = { (status: Int, error: String) in
                    answer.status == status && answer["Proxy-Status"]?.contains(error) == true
                }
                // Queries that a vanished server has received go unanswered; c-ares asks again.
                let mayTimeOut = over == "udp" && behaviour == "vanish"
                #expect(says(status, error) || mayTimeOut && says(504, "dns_timeout"), "\(answer)")
                try await client.finishSending()
            }
            // Queries continue for the cache, and keep their sockets until c-ares gives up, after 14 s.
            try await shared.hasGivenBack(since: before)
        }
    }
}
