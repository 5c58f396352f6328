import Foundation
import Testing

/// `limits.clients` and the descriptors of the process. Clients over the limit wait, and the log says so once at the
/// beginning and once at the end.
@Suite(.timeLimit(.minutes(5)))
struct LimitTests {
    private static let question = "GET / HTTP/1.1\r\nHost: proxy.test\r\n\r\n"

    @Test func theLimitIsToldOnceAndItsEndOnce() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["limits": ["clients: 2"]])
            var served = try (1...2).map { _ in try RawConnection(to: proxy) }
            let waiting = try (1...5).map { _ in try RawConnection(to: proxy) }
            _ = try await proxy.events.first("clients.limit")
            for connection in waiting {
                try await connection.send(Self.question)
            }
            for connection in waiting {
                served.removeFirst()
                #expect(try await connection.response().status == 400)
                served.append(connection)
            }
            served = []
            let end = try await proxy.events.first("clients.limit") { $0["waited"] != nil }
            #expect(end["waited"] == "5", "\(end)")
            #expect(proxy.events.all("clients.limit").count == 2)
        }
    }

    @Test func aClientOfTheTLSPortCountsOnce() async throws {
        try await withTestBed { bed in
            let front = try TestRoots("Front")
            let chain = try front.chain("proxy.test", "127.0.0.1")
            try bed.file("proxy/front.pem", chain.pem)
            try bed.file("proxy/front.key", chain.keyPEM)
            let shared = try await OriginBed.prepare(
                bed,
                sections: [
                    "proxy": ["tls: {certificate: front.pem, private_key: front.key}"], "limits": ["clients: 2"],
                ])
            let roots = try front.write(to: bed, name: "front-roots")
            let origin = try #require(shared.plainOrigin)
            var clients: [ChildProcess] = []
            for name in ["a", "b"] {
                clients.append(
                    try await bed.start([
                        "curl", "-sS", "--proxy", "https://127.0.0.1:\(shared.proxy.port)", "--proxy-cacert", roots,
                        "\(shared.plainURL)/hold/\(name)",
                    ]))
                _ = try await origin.events.first("held") { $0["name"] == name }
            }
            #expect(shared.proxy.events.all("clients.limit").isEmpty)
            // And no less than once.
            let third = try RawConnection(to: shared.proxy)
            _ = try await shared.proxy.events.first("clients.limit")
            for name in ["a", "b"] {
                let release = try await bed.run([
                    "curl", "-sS", "--noproxy", "*", "http://127.0.0.1:\(shared.secondOriginPort)/release/\(name)",
                ])
                #expect(release.output == "released", "\(release)")
            }
            for client in clients { #expect(try await client.ending() == .exited(0)) }
            try await third.send(Self.question)
            #expect(try await third.response().status == 400)
        }
    }

    /// It holds its place no longer than it may take to read the answer.
    @Test func aClientThatStaysAfterItsLastAnswerIsLetGo() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil, sections: ["limits": ["clients: 1"]])
            let staying = try RawConnection(to: proxy)
            try await staying.send("no request\r\n\r\n")
            #expect(try await staying.response().status == 400)
            #expect(try await staying.receive().isEmpty, "it was the last one")
            let next = try RawConnection(to: proxy)
            try await next.send(Self.question)
            #expect(try await next.response().status == 400)
            withExtendedLifetime(staying) {}
        }
    }

    @Test func theSoftLimitOfDescriptorsIsRaised() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, launcher: ["/usr/bin/prlimit", "--nofile=200:2000"])
            let limits = try String(contentsOfFile: "/proc/\(proxy.process.identifier)/limits", encoding: .utf8)
            let line = limits.split(separator: "\n").first { $0.hasPrefix("Max open files") }
            #expect(line?.split(separator: " ")[3] == "2000", "\(limits)")
            // 10,000 clients is the default.
            let warning = try await proxy.events.first("config.warning") {
                $0["cause"]?.contains("limits.clients") == true
            }
            #expect(warning["cause"]?.contains("2000") == true, "\(warning)")
        }
    }

    @Test func aReloadWarnsOfClientsThatCannotFit() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["limits": ["clients: 100"]],
                launcher: ["/usr/bin/prlimit", "--nofile=2000:2000"])
            #expect(proxy.events.all("config.warning").isEmpty)
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil, sections: ["limits": ["clients: 5000"]])
            #expect(try await proxy.reload().name == "config.reload")
            let warning = try await proxy.events.first("config.warning") { $0["cause"]?.contains("5000") == true }
            #expect(warning["cause"]?.contains("limits.clients") == true, "\(warning)")
        }
    }

    @Test func aLackOfDescriptorsIsToldOnceAndItsEndOnce() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, launcher: ["/usr/bin/prlimit", "--nofile=80:80"])
            var clients = try (1...100).map { _ in try RawConnection(to: proxy) }
            let last = clients.removeLast()
            let begin = try await proxy.events.first("accept.failed")
            #expect(begin["cause"]?.contains("Too many open files") == true, "\(begin)")
            try await last.send(Self.question)
            clients = []
            #expect(try await last.response().status == 400)
            let end = try await proxy.events.first("accept.failed") { $0["waited"] != nil }
            #expect(end["waited"].flatMap { Int($0) } ?? 0 > 0, "\(end)")
            #expect(proxy.events.all("accept.failed").count == 2)
        }
    }
}
