import Foundation
import Testing

/// Streams as tasks: each is listed, suspended and cancelled on its own.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2TaskTests {
    private static let length = 24_000_000

    private func prepare(_ bed: TestBed, _ crossing: Crossing) async throws -> (SharedBed, HTTP2Client) {
        let shared = try await HTTP2Bed.prepare(
            bed, sections: ["proxy": ["workers: 1"], "timeouts": ["idle_upstream: 100ms"]])
        return (shared, try await HTTP2Client(in: shared, authority: shared.authority(of: crossing.host)))
    }

    private func task(_ shared: SharedBed, _ path: String) async throws -> TaskControl.Summary {
        var found: TaskControl.Summary?
        try await eventually("the task \(path)") {
            found = try await shared.tasks.list().first { $0.path == path }
            return found != nil
        }
        return try #require(found)
    }

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func oneStandsStillWhileOthersMove(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let (shared, client) = try await prepare(bed, crossing)
            let stream = try await client.request("GET", "/large/\(Self.length)", held: true)
            #expect(try await client.body(stream, atLeast: 1).count ?? 0 > 0)
            let task = try await task(shared, "/large/\(Self.length)")
            #expect(task.kind == "exchange" && task.state == "running" && task.host == crossing.host, "\(task)")
            let suspended = try await shared.tasks.order("suspend", task.id)
            #expect(suspended.state == "suspended")
            try await client.take(Self.length, of: stream)
            for _ in 0..<3 {
                let other = try await client.get("/large/2000000")
                #expect(other.body.count == 2_000_000 && other.body.isPattern == true)
                #expect(try await shared.tasks.show(task.id).bytesDown == suspended.bytesDown)
            }
            let still = try #require(try await client.body(stream, atLeast: 0).count)
            #expect(still < Self.length)
            try await shared.tasks.order("resume", task.id)
            let whole = try await client.body(stream)
            #expect(whole.count == Self.length && whole.isPattern == true && whole.ended == true, "\(whole)")
        }
    }

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func anUploadStandsStill(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let (shared, client) = try await prepare(bed, crossing)
            let stream = try await client.request("POST", "/echo", ends: false)
            try await client.send(100_000, on: stream)
            let task = try await task(shared, "/echo")
            try await shared.tasks.order("suspend", task.id)
            let before = try await shared.tasks.show(task.id).bytesUp
            try await client.send(Self.length, on: stream, ends: true, later: true)
            #expect(try await client.get("/large/2000000").body.count == 2_000_000)
            #expect(try await shared.tasks.show(task.id).bytesUp == before)
            try await shared.tasks.order("resume", task.id)
            let body = try await client.body(stream)
            #expect(body.text?.contains("\"length\": \(Self.length + 100_000)") == true, "\(body)")
        }
    }

    /// Before and after the response has begun.
    @Test(arguments: ["/silent/request", "/hold/x"]) func oneIsCancelledAndOthersAreNot(path: String) async throws {
        try await withTestBed { bed in
            let (shared, client) = try await prepare(bed, .h2ToH2)
            let other = try await client.request("GET", "/hold/other")
            #expect(try await client.head(other).status == 200)
            let stream = try await client.request("GET", path)
            if path == "/hold/x" { #expect(try await client.body(stream, atLeast: 6).text == "first,") }
            let task = try await task(shared, path)
            _ = try await shared.tasks.order("cancel", task.id)
            if path == "/hold/x" {
                #expect(try await client.body(stream).reset == "INTERNAL_ERROR")
            } else {
                #expect(try await client.head(stream).status == 403)
            }
            // The origin gets a reset, too.
            let reset = try await #require(shared.origin).events.first("reset") { $0["target"] == path }
            #expect(reset["code"] == "8", "\(reset)")
            #expect(try await client.get("/release/other").head.status == 200)
            #expect(try await client.body(other).text == "first,second")
            let line = try await shared.proxy.events.first("exchange") { $0["task"] == "\(task.id)" }
            #expect(line["cause"]?.contains("cancelled") == true, "\(line)")
        }
    }

    /// A reset by the client ends the stream's task and its request to the origin. Other streams continue.
    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func aClientThatResetsAStreamEndsItsTask(
        crossing: Crossing
    ) async throws {
        try await withTestBed { bed in
            let (shared, client) = try await prepare(bed, crossing)
            for path in ["/silent/request", "/hold/reset"] {
                let stream = try await client.request("GET", path)
                _ = try await shared.origin(crossing).events.first("request") { $0["target"] == path }
                let task = try await task(shared, path)
                try await client.reset(stream)
                let line = try await shared.proxy.events.first("exchange") { $0["task"] == "\(task.id)" }
                #expect(line["cause"]?.contains("CANCEL") == true, "\(line)")
                if crossing == .h2ToH2 {
                    _ = try await shared.origin(crossing).events.first("reset") { $0["target"] == path }
                }
            }
            #expect(try await client.get("/echo").head.status == 200)
            #expect(try await shared.tasks.list().isEmpty)
        }
    }

    /// Each request has one log line and one task, whatever its stream shares.
    @Test func eachRequestIsLoggedOnce() async throws {
        try await withTestBed { bed in
            let (shared, client) = try await prepare(bed, .h2ToH2)
            var streams: [Int] = []
            for number in 0..<20 { streams.append(try await client.request("GET", "/line/\(number)")) }
            for stream in streams { #expect(try await client.body(stream).ended == true) }
            for number in 0..<20 {
                _ = try await shared.proxy.events.first("exchange") { $0["path"] == "/line/\(number)" }
            }
            let lines = shared.proxy.events.all("exchange")
            #expect(lines.count == 20 && Set(lines.compactMap { $0["task"] }).count == 20, "\(lines)")
            #expect(
                lines.allSatisfy { $0["status"] == "200" && $0["host"] == "h2.test" && $0["method"] == "GET" },
                "\(lines)")
        }
    }
}
