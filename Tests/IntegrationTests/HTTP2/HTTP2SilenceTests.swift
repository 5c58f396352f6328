import Testing

/// HTTP/2 peers that fall silent. The waiting side gets an error, others are served meanwhile, and nothing is left
/// behind.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2SilenceTests {
    enum Outcome: Sendable {
        /// 504 or 502 with this in the body or fields.
        case refused(Int, String)
        /// This much of the body, then a reset.
        case cut(String)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        /// Arguments of the origin, or a path.
        let silence: String
        let timeout: String
        let outcome: Outcome

        var testDescription: String { silence }
    }

    private static let origins = [
        Case(silence: "--silent preface", timeout: "first_byte: 1s", outcome: .refused(504, "http_response_timeout")),
        Case(silence: "--silent settings", timeout: "first_byte: 1s", outcome: .refused(504, "http_response_timeout")),
        Case(silence: "/silent/request", timeout: "first_byte: 1s", outcome: .refused(504, "http_response_timeout")),
        Case(silence: "/trickle/head", timeout: "first_byte: 1s", outcome: .refused(504, "http_response_timeout")),
        Case(silence: "/silent/head", timeout: "idle_client: 2s", outcome: .cut("")),
        Case(silence: "/silent/data", timeout: "idle_client: 2s", outcome: .cut("first")),
        Case(silence: "/deaf/x", timeout: "first_byte: 1s", outcome: .refused(504, "http_response_timeout")),
    ]

    @Test(arguments: origins, Crossing.bothToH2) func anOriginThatFallsSilent(
        silence: Case, crossing: Crossing
    ) async throws {
        try await withTestBed { bed in
            let isPath = silence.silence.hasPrefix("/")
            let shared = try await HTTP2Bed.prepare(
                bed, origin: isPath ? [] : silence.silence.split(separator: " ").map(String.init),
                sections: ["timeouts": [silence.timeout, "idle_upstream: 100ms"]])
            let before = try await shared.footprint()
            let client = try await bed.start(
                [
                    "curl", "-sS", "-i", "--suppress-connect-headers", "-m", "120", crossing.option,
                    shared.url(crossing, isPath ? silence.silence : "/x"),
                ],
                environment: shared.proxy.clientEnvironment)
            if silence.silence != "/trickle/head" {
                _ = try await #require(shared.origin).events.first(silence.silence == "/deaf/x" ? "deaf" : "silent")
            }
            try await shared.servesOthers()
            let ending = try await client.ending()
            let output = await client.output.text
            switch silence.outcome {
            case .refused(let status, let words):
                #expect(output.contains("HTTP/\(crossing.version) \(status)") && output.contains(words), "\(output)")
            case .cut(let body):
                #expect(ending != .exited(0) && output.contains("HTTP/\(crossing.version) 200"), "\(output)")
                #expect(output.hasSuffix("\r\n\r\n\(body)") || body.isEmpty && output.hasSuffix("\r\n\r"), "\(output)")
            }
            try await shared.hasGivenBack(since: before)
        }
    }

    /// Bytes that come, but too slowly (`session.minimum_rate`).
    @Test func anOriginThatTrickles() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, pins: "hosts:\n  - match: h2.test\n    session: {minimum_rate: 10KiB/1s}\n",
                sections: ["timeouts": ["idle_upstream: 100ms"]])
            let before = try await shared.footprint()
            let run = try await shared.curl(.h2ToH2, "/trickle/data", "-i", "-m", "120")
            #expect(!run.succeeded && run.output.contains("HTTP/2 200"), "\(run)")
            let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/trickle/data" }
            #expect(line["cause"]?.contains("minimum_rate") == true, "\(line)")
            try await shared.hasGivenBack(since: before)
        }
    }

    /// Another stream of a silent connection has made progress: the connection is alive, and is kept.
    @Test func aConnectionOnWhichOneStreamIsSilentIsKept() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["proxy": ["workers: 1"], "timeouts": ["first_byte: 2s"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let silent = try await client.request("GET", "/silent/request")
            while try await client.get("/echo").head.status == 200,
                try await shared.tasks.list().contains(where: { $0.path == "/silent/request" })
            {}
            #expect(try await client.head(silent).status == 504)
            #expect(try await client.get("/echo").head.status == 200)
            #expect(try #require(shared.origin).events.all("connection").count == 1)
        }
    }

    // MARK: Clients

    /// Bytes of a client of HTTP/2 after its preface and SETTINGS, in hexadecimal, and then silence.
    private static let clients = [
        "nothing": "",
        "half a frame header": "0000",
        // HEADERS of stream 1 without END_HEADERS, and no CONTINUATION.
        "half a head": "000001" + "01" + "00" + "00000001" + "82",
        "a PING": "000008" + "06" + "00" + "00000000" + "0000000000000000",
    ]

    @Test(arguments: clients.keys.sorted()) func aClientThatFallsSilent(silence: String) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["timeouts": ["idle_client: 1s", "idle_upstream: 100ms"]])
            let before = try await shared.footprint()
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            try await client.raw(try #require(Self.clients[silence]))
            try await client.closed()
            try await shared.hasGivenBack(since: before)
        }
    }

    /// The client's stream is complete, the origin's is not. The client's connection ends, and the exchange with it.
    @Test func aResponseThatDoesNotEnd() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["timeouts": ["idle_client: 2s", "idle_upstream: 100ms"]])
            let before = try await shared.footprint()
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let (head, body) = try await client.get("/silent/end")
            #expect(head.status == 200 && body.ended == true && body.count == 0, "\(head) \(body)")
            try await client.close()
            let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/silent/end" }
            #expect(line["cause"]?.contains("client") == true, "\(line)")
            try await shared.hasGivenBack(since: before)
            try await shared.servesOthers()
        }
    }

    /// A refusal answers HEAD without a body. It is complete, and none of its deadlines outlives the client's
    /// connection.
    @Test func aHeadThatIsRefused() async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["timeouts": ["idle_client: 1s"], "limits": ["request_head: 2KiB"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
            let refused: [(Int, HTTP2Client.Fields)] = [
                (400, [(":scheme", "ftp")]), (431, [("x-long", String(repeating: "x", count: 3000))]),
            ]
            for (status, fields) in refused {
                let stream = try await client.request("HEAD", "/x", fields)
                let (head, body) = (try await client.head(stream), try await client.body(stream))
                #expect(head.status == status && body.ended == true && body.count == 0, "\(head) \(body)")
            }
            try await client.close()
            // Longer than idle_client.
            try await Task.sleep(for: .seconds(2))
            try await shared.servesOthers()
            #expect(shared.proxy.process.unaskedEnding == nil)
        }
    }

    /// A request with an incomplete body ends alone; the connection continues with its other streams.
    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func aBodyThatDoesNotCome(crossing: Crossing) async throws {
        try await withTestBed { bed in
            let shared = try await HTTP2Bed.prepare(
                bed, sections: ["timeouts": ["idle_client: 2s", "idle_upstream: 100ms"]])
            let client = try await HTTP2Client(in: shared, authority: shared.authority(of: crossing.host))
            let stream = try await client.request("POST", "/echo", [("content-length", "1000")], ends: false)
            try await client.send(10, on: stream)
            let other = try await client.request("GET", "/hold/x")
            #expect(try await client.head(other).status == 200)
            let head = try await client.head(stream)
            #expect(head.status == 408 || head.reset != nil, "\(head)")
            let line = try await shared.proxy.events.first("exchange") { $0["path"] == "/echo" }
            #expect(line["cause"] != nil, "\(line)")
        }
    }
}
