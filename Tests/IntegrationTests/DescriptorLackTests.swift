import Foundation
import Testing

/// Out of descriptors, the proxy can't connect, and says so to the client. It blames neither a name server nor the
/// origin.
@Suite(.timeLimit(.minutes(5)))
struct DescriptorLackTests {
    @Test func itIsToldAsSuch() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["workers: 1"]])
            // Opens whatever is opened once and kept.
            let before = try proxy.openDescriptors()
            _ = try await proxy.connect(to: "127.0.0.1:1")
            var free = 0
            try await eventually("the first client to be gone") {
                guard try proxy.openDescriptors() <= before else { return false }
                free = try Self.firstFree(proxy)
                return true
            }
            let run = try await bed.run([
                "prlimit", "--pid", "\(proxy.process.identifier)", "--nofile=\(free + 1):\(free + 1)",
            ])
            try #require(run.succeeded, "\(run)")
            for target in [
                "CONNECT name.test:443", "CONNECT 192.0.2.1:443", "GET http://name.test/", "GET http://[2001:db8::1]/",
            ] {
                try await eventually("room for one more") { try Self.firstFree(proxy) == free }
                let client = try RawConnection(to: proxy)
                try await eventually("the client to take the last one") { try Self.firstFree(proxy) > free }
                try await client.send("\(target) HTTP/1.1\r\nHost: name.test\r\nConnection: close\r\n\r\n")
                let answer = try await client.response()
                #expect(answer.status == 503, "\(target): \(answer)")
                #expect(answer.reason == "Proxy out of file descriptors", "\(target): \(answer)")
                #expect(answer["Proxy-Status"]?.contains("proxy_internal_error") == true, "\(answer)")
            }
            #expect(!proxy.events.lines.lines.contains { $0.contains("DNS servers") })
        }
    }

    /// Idle connections are closed for an active client. The pooled one goes first, then clients that have long been
    /// silent.
    @Test func closesIdleConnections() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            try await eventually("its upstream connection alone to be left") { try shared.proxy.openSockets() == 2 }
            let limit = try shared.proxy.openDescriptors() + 20
            let run = try await bed.run([
                "prlimit", "--pid", "\(shared.proxy.process.identifier)", "--nofile=\(limit):\(limit)",
            ])
            try #require(run.succeeded, "\(run)")
            let idle = try (1...60).map { _ in try RawConnection(to: shared.proxy) }
            _ = try await shared.proxy.events.first("accept.failed")
            // Until the first ones have been idle for a second, an accepted client may find no descriptor left for its
            // origin.
            try await eventually("one more to be served") {
                let client = try RawConnection(to: shared.proxy)
                let authority = "127.0.0.1:\(shared.secondOriginPort)"
                try await client.send(
                    "GET http://\(authority)/echo HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n")
                return try await client.response().status == 200
            }
            #expect(try await idle.first?.receive().isEmpty == true)
            let event = try await shared.proxy.events.first("descriptors.lack")
            #expect(event["effect"] == "idle connections are closed", "\(event)")
        }
    }

    /// The number that the system gives to the next descriptor.
    private static func firstFree(_ proxy: ProxyProcess) throws -> Int {
        let open = Set(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.process.identifier)/fd").map { Int($0) })
        return (0...open.count).first { !open.contains($0) } ?? open.count
    }
}
