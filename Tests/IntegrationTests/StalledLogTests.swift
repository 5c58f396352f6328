import Foundation
import Testing

/// The log isn't read, or not fast enough. The proxy continues, and then says what is missing.
@Suite(.timeLimit(.minutes(5)))
struct StalledLogTests {
    /// More lines than the pipe holds, or than its reader has seen.
    private static let many = 300

    private func requests(_ count: Int, to proxy: ProxyProcess) async throws {
        for number in 1...count {
            let connection = try RawConnection(to: proxy)
            try await connection.send("GET /\(number) HTTP/1.1\r\nHost: proxy.test\r\n\r\n")
            #expect(try await connection.response().status == 400, "request \(number)")
        }
    }

    @Test func theProxyServesOnAndNoLineIsLost() async throws {
        try await withTestBed { bed in
            let log = try StalledPipe()
            let proxy = try await ProxyProcess(in: bed, trust: nil, log: log)
            try await requests(Self.many, to: proxy)
            log.proceed()
            // In any order: each worker writes its own.
            let expected = Set((1...Self.many).map { "/\($0)" })
            try await eventually("a line of each request") {
                Set(proxy.events.all("exchange").compactMap { $0["path"] }) == expected
            }
            #expect(proxy.events.all("log.dropped").isEmpty)
        }
    }

    @Test func aReloadIsTakenUp() async throws {
        try await withTestBed { bed in
            let log = try StalledPipe()
            let proxy = try await ProxyProcess(in: bed, trust: nil, log: log)
            try await requests(Self.many, to: proxy)
            try bed.file("proxy/pins.yaml", "hosts: [{match: denied.test, action: deny}]\n")
            let run = try await bed.run(
                [ProxyProcess.executable, "reload", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.succeeded, "\(run)")
            #expect(try await proxy.connect(to: "denied.test:443").status == 403)
        }
    }

    /// The stop waits for exchanges in flight, not for the log.
    @Test func itDrainsAndEnds() async throws {
        try await withTestBed { bed in
            let log = try StalledPipe()
            let shared = try await OriginBed.prepare(bed, log: log)
            let client = try await bed.start(
                ["curl", "-sS", "\(shared.url)/hold/it"], environment: shared.proxy.clientEnvironment)
            _ = try await #require(shared.origin).events.first("held")
            try await requests(Self.many, to: shared.proxy)
            shared.proxy.process.send(signal: SIGTERM)
            try await eventually("the port to be closed") { (try? RawConnection(to: shared.proxy)) == nil }
            let release = try await bed.run([
                "curl", "-sS", "--cacert", bed.path("roots.pem"), "--resolve", "\(shared.authority):127.0.0.1",
                "\(shared.url)/release/it",
            ])
            #expect(release.succeeded, "\(release)")
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text == "first,second")
            #expect(try await shared.proxy.process.ending() == .exited(0))
        }
    }

    /// A reader that is just slow gets everything before the end.
    @Test func whatWaitsIsWrittenBeforeTheEnd() async throws {
        try await withTestBed { bed in
            let log = try StalledPipe()
            let proxy = try await ProxyProcess(in: bed, trust: nil, log: log)
            try await requests(Self.many, to: proxy)
            proxy.process.send(signal: SIGTERM)
            log.proceed()
            #expect(try await proxy.process.ending() == .exited(0))
            _ = await log.lines.text
            #expect(proxy.events.all("exchange").count == Self.many)
            #expect(proxy.events.all.last?.name == "proxy.stop")
        }
    }

    /// Lines over the limit are dropped and counted: none is lost silently.
    @Test func whatOverflowsIsCounted() async throws {
        try await withTestBed { bed in
            let log = try StalledPipe()
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts: [{match: denied.test, action: deny}]\n", trust: nil, log: log)
            let path = String(repeating: "x", count: 500)
            let connection = try RawConnection(to: proxy)
            let count = 10_000
            for _ in 1...(count / 50) {
                let request = "GET http://denied.test/\(path) HTTP/1.1\r\nHost: denied.test\r\n\r\n"
                try await connection.send(String(repeating: request, count: 50))
                var answers = 0
                var text = ""
                while answers < 50 {
                    text += String(decoding: try await connection.receive(), as: UTF8.self)
                    answers = text.components(separatedBy: "HTTP/1.1 403 ").count - 1
                }
                // All of the last one, so that the next batch begins with its own.
                while !text.hasSuffix("}\n"), !text.hasSuffix("}") {
                    text += String(decoding: try await connection.receive(), as: UTF8.self)
                }
            }
            log.proceed()
            let dropped = try await proxy.events.first("log.dropped")
            let lines = try #require(dropped["lines"].flatMap { Int($0) })
            #expect(lines > 0)
            // The last ones may have been written once there was space again.
            try await eventually("every line to be there, or counted") {
                proxy.events.all("exchange").count + lines == count
            }
            // Logging continues.
            try await requests(1, to: proxy)
            _ = try await proxy.events.first("exchange") { $0["path"] == "/1" }
            #expect(proxy.events.all("log.dropped").count == 1)
        }
    }
}
