import Foundation
import Testing

/// With no descriptor left, a connection can't be made, and the client is told why: neither a name server nor the
/// origin is to blame.
@Suite(.timeLimit(.minutes(5)))
struct DescriptorLackTests {
    @Test func itIsToldAsSuch() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["proxy": ["workers: 1"]])
            // Whatever is opened once and kept.
            let before = try proxy.openDescriptors()
            _ = try await proxy.connect(to: "127.0.0.1:1")
            var free = 0
            try await eventually("the first client to be gone") {
                guard try proxy.openDescriptors() <= before else { return false }
                free = try Self.firstFree(proxy)
                return true
            }
            let run = try await bed.run(["prlimit", "--pid", "\(proxy.process.identifier)", "--nofile=\(free + 1):\(free + 1)"])
            try #require(run.succeeded, "\(run)")
            for target in ["CONNECT name.test:443", "CONNECT 192.0.2.1:443", "GET http://name.test/", "GET http://[2001:db8::1]/"] {
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

    /// The connection that rests in the pool makes way for the one that is needed.
    @Test func anUpstreamConnectionThatRestsIsGivenUp() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            try await eventually("its upstream connection alone to be left") { try shared.proxy.openSockets() == 2 }
            let clients = try await Self.takeAll(of: shared.proxy, in: bed)
            let client = try #require(clients.last)
            // The same origin by another name, to which no connection is there.
            let authority = "127.0.0.1:\(shared.secondOriginPort)"
            try await client.send("GET http://\(authority)/echo HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            let answer = try await client.response()
            #expect(answer.status == 200, "\(answer)")
            let event = try await shared.proxy.events.first("descriptors.lack")
            #expect(event["effect"] == "idle connections are closed", "\(event)")
        }
    }

    /// A client that has long said nothing makes way for one that asks.
    @Test func aClientThatRestsIsGivenUp() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            try await eventually("its upstream connection alone to be left") { try shared.proxy.openSockets() == 2 }
            let resting = try await Self.takeAll(of: shared.proxy, in: bed)
            // What the pool has is for this one; until the others have rested for a while, it has no other.
            try await eventually("a client to be served in the place of one that rests") {
                let client = try RawConnection(to: shared.proxy)
                let authority = "127.0.0.1:\(shared.secondOriginPort)"
                try await client.send("GET http://\(authority)/echo HTTP/1.1\r\nHost: \(authority)\r\nConnection: close\r\n\r\n")
                return try await client.response().status == 200
            }
            #expect(try await resting.first?.receive().isEmpty == true)
        }
    }

    /// Lets the proxy have no more descriptors than it has, and fills the gaps between them with clients, the oldest first.
    private static func takeAll(of proxy: ProxyProcess, in bed: TestBed) async throws -> [RawConnection] {
        let highest = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.process.identifier)/fd").compactMap(Int.init).max() ?? 0
        let limit = try max(highest, firstFree(proxy)) + 1
        let run = try await bed.run(["prlimit", "--pid", "\(proxy.process.identifier)", "--nofile=\(limit):\(limit)"])
        try #require(run.succeeded, "\(run)")
        var clients: [RawConnection] = []
        while case let free = try firstFree(proxy), free < limit {
            clients.append(try RawConnection(to: proxy))
            try await eventually("the client to take the next one") { try firstFree(proxy) > free }
        }
        return clients
    }

    /// The number that the system gives to the next descriptor.
    private static func firstFree(_ proxy: ProxyProcess) throws -> Int {
        let open = Set(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.process.identifier)/fd").map { Int($0) })
        return (0...open.count).first { !open.contains($0) } ?? open.count
    }
}
