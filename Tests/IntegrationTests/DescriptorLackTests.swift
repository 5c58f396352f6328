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

    /// The number that the system gives to the next descriptor.
    private static func firstFree(_ proxy: ProxyProcess) throws -> Int {
        let open = Set(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.process.identifier)/fd").map { Int($0) })
        return (0...open.count).first { !open.contains($0) } ?? open.count
    }
}
