import Foundation
import Testing

/// A slow reader holds up its own stream, and no other of the same connection.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2BackPressureTests {
    /// Much more than all buffers on the way hold.
    private static let length = 16_000_000

    /// An unread response holds up no other stream, of this client or of others. It arrives whole in the end.
    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func anUnreadResponseHoldsUpNobodyElse(crossing: Crossing) async throws
    {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: crossing.host))
            let unread = try await client.request("GET", "/large/\(Self.length)", held: true)
            #expect(try await client.head(unread).status == 200)
            // The stream's window, and then nothing.
            let first = try await client.body(unread, atLeast: 1 << 20)
            #expect(first.count == 1 << 20)
            for _ in 0..<3 {
                let other = try await client.get("/large/3000000")
                #expect(other.body.count == 3_000_000 && other.body.isPattern == true, "\(other.body)")
                let run = try await shared.curl(crossing, "/large/3000000", "-o", bed.path("other"))
                #expect(try run.succeeded && Pattern.isWhole(bed.path("other"), 3_000_000), "\(run)")
            }
            #expect(try await client.body(unread, atLeast: 1 << 20).count == 1 << 20)
            // Far less than the response is kept on the way.
            let task = try await shared.tasks.only()
            #expect(task.bytesDown < Self.length / 2, "\(task)")
            try await client.take(Self.length, of: unread)
            let whole = try await client.body(unread)
            #expect(whole.count == Self.length && whole.isPattern == true && whole.ended == true, "\(whole)")
        }
    }

    /// The origin leaves a request unread.
    @Test(arguments: Crossing.bothToH2) func anUnreadRequestHoldsUpNobodyElse(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let file = try bed.file("body", Pattern.bytes(Self.length))
            #expect(try await shared.curl(crossing, "/echo").succeeded)
            let upload = try await bed.start(
                ["curl", "-sS", crossing.option, "-H", "Expect:", "-T", file, shared.url(crossing, "/unread/body")],
                environment: shared.proxy.clientEnvironment)
            _ = try await #require(shared.origin).events.first("held")
            // This body has used up the connection's window, which the other bodies would share.
            try await eventually("its window to be full") { try await shared.tasks.only().bytesUp >= 65_535 }
            let small = try bed.file("small", Pattern.bytes(500_000))
            for _ in 0..<3 {
                let run = try await shared.curl(crossing, "/echo", "-H", "Expect:", "-T", small, "-m", "100")
                #expect(try ReceivedRequest(run).length == 500_000, "\(run)")
                let down = try await shared.curl(crossing, "/large/3000000", "-o", bed.path("other"))
                #expect(try down.succeeded && Pattern.isWhole(bed.path("other"), 3_000_000), "\(down)")
            }
            let task = try await shared.tasks.only()
            #expect(task.bytesUp < Self.length / 2, "\(task)")
            #expect(try await shared.curl(crossing, "/release/body").succeeded)
            #expect(try await upload.ending() == .exited(0))
            let output = await upload.output.text
            #expect(output.contains(try await shared.sha256(file)), "\(output)")
        }
    }

    /// A client that reads none of its many streams gets no more than its windows.
    @Test func manyUnreadResponsesAreBounded() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            #expect(try await client.get("/echo").head.status == 200)
            let before = try shared.proxy.ownMemory()
            var streams: [Int] = []
            for _ in 0..<50 { streams.append(try await client.request("GET", "/large/\(Self.length)", held: true)) }
            for stream in streams { #expect(try await client.body(stream, atLeast: 1 << 20).count == 1 << 20) }
            #expect(try await client.get("/echo").head.status == 200)
            // 800 MB are asked for.
            let grown = try shared.proxy.ownMemory() - before
            if !Sanitizer.isOn { #expect(grown < 100 << 20, "\(grown >> 20) MiB") }
            for stream in streams { try await client.reset(stream) }
            try await eventually("the tasks to end") { try await shared.tasks.list().isEmpty }
            #expect(try await client.get("/echo").head.status == 200)
        }
    }

    /// Windows that grow and shrink while streams are open (RFC 9113 section 6.9.2).
    @Test func smallWindowsAreKept() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, origin: ["--window", "1"], sections: ["proxy": ["workers: 1"]])
            let file = try bed.file("body", Pattern.bytes(3000))
            // The origin counts by its settings before they are known.
            #expect(try await shared.curl(.h2ToH2, "/echo").succeeded)
            let run = try await shared.curl(.h2ToH2, "/echo", "-H", "Expect:", "-T", file)
            let digest = try await shared.sha256(file)
            #expect(try ReceivedRequest(run).sha256 == digest, "\(run)")
            let program = try await HTTP2Client.program(in: shared)
            let client = try HTTP2Client(of: program, authority: shared.authority(of: "h2.test"))
            // SETTINGS_INITIAL_WINDOW_SIZE
            try await client.connect(settings: ["4": 7])
            let (_, body) = try await client.get("/large/3000")
            #expect(body.count == 3000 && body.isPattern == true && body.ended == true, "\(body)")
        }
    }
}
