import Foundation
import Testing

/// What a message has besides head and body: trailers, interim responses, expectations, cookies.
@Suite(.sharedBed(HTTP2Bed.prepare), .timeLimit(.minutes(5)))
struct HTTP2SemanticsTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private func client(_ crossing: Crossing) async throws -> HTTP2Client {
        try await HTTP2Client(in: shared, authority: shared.authority(of: crossing.host))
    }

    /// Sends a client's HTTP/1.1 bytes, and returns all that comes back.
    private func exchange(_ crossing: Crossing, _ request: String) async throws -> Run {
        let authority = shared.authority(of: crossing.host)
        return try await shared.bed.secureExchange(
            via: shared.proxy, to: authority,
            request.replacing("$HOST", with: "Host: \(authority)\r\nConnection: close"))
    }

    // MARK: Trailers

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func trailersOfARequestArrive(crossing: Crossing) async throws {
        let client = try await client(crossing)
        let stream = try await client.request("POST", "/echo", [("trailer", "x-sum")], ends: false)
        try await client.send("hello", on: stream, trailers: [["x-sum", "5"]])
        let body = try await client.body(stream)
        #expect(
            body.text?.contains("\"length\": 5") == true && body.text?.lowercased().contains("\"x-sum: 5\"") == true,
            "\(body)")
    }

    @Test func trailersOfARequestInChunksArrive() async throws {
        let run = try await exchange(
            .h1ToH2,
            """
            POST /echo HTTP/1.1\r\n$HOST\r\nTransfer-Encoding: chunked\r\nTrailer: \
            X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n
            """
        )
        #expect(run.output.contains("\"length\": 5") && run.output.contains("\"x-sum: 5\""), "\(run)")
    }

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func trailersOfAResponseArrive(crossing: Crossing) async throws {
        let client = try await client(crossing)
        let (head, body) = try await client.get("/chunked", [("te", "trailers")])
        #expect(head.status == 200 && body.text == "hello, world" && body.ended == true, "\(body)")
        #expect(body.trailers == [["x-sum", "12"]], "\(body)")
    }

    @Test func trailersOfAResponseArriveInChunks() async throws {
        let run = try await exchange(.h1ToH2, "GET /chunked HTTP/1.1\r\n$HOST, TE\r\nTE: trailers\r\n\r\n")
        #expect(run.output.contains("hello, world"), "\(run)")
        #expect(run.output.contains("\r\n0\r\nx-sum: 12\r\n"), "\(run)")
    }

    // MARK: Interim responses

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func earlyHintsArrive(crossing: Crossing) async throws {
        let client = try await client(crossing)
        let stream = try await client.request("GET", "/hints")
        let early = try await client.head(stream)
        #expect(early.status == 103 && early.values("link") == ["</style.css>; rel=preload"], "\(early)")
        #expect(try await client.head(stream).status == 200)
        #expect(try await client.body(stream).text == "hinted\n")
    }

    @Test func earlyHintsArriveInHTTP1() async throws {
        let run = try await exchange(.h1ToH2, "GET /hints HTTP/1.1\r\n$HOST\r\n\r\n")
        #expect(run.output.hasPrefix("HTTP/1.1 103 ") && run.output.contains("HTTP/1.1 200 "), "\(run)")
        #expect(run.output.hasSuffix("\r\n\r\nhinted"), "\(run)")
    }

    @Test(arguments: Crossing.allCases) func manyInterimResponsesArrive(crossing: Crossing) async throws {
        let run = try await shared.curl(crossing, "/interims/10", "-i")
        #expect(run.succeeded && run.output.components(separatedBy: " 102").count == 11, "\(run)")
        #expect(run.output.hasSuffix("\r\n\r\nat last"), "\(run)")
    }

    // MARK: Expect

    /// curl waits for 100 before it sends, a minute if it has to.
    @Test(arguments: Crossing.allCases) func whoExpectsIsToldToContinue(crossing: Crossing) async throws {
        let file = try shared.bed.file("expected-\(crossing)", Pattern.bytes(2_000_000))
        let run = try await shared.curl(
            crossing, "/expectation", "-sSv", "-T", file, "-H", "Expect: 100-continue", "--expect100-timeout", "60")
        let received = try ReceivedRequest(run)
        let digest = try await shared.sha256(file)
        #expect(received.length == 2_000_000 && received.sha256 == digest, "\(run)")
        #expect(run.errors.contains("< HTTP/\(crossing.version) 100"), "\(run)")
    }

    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func whoIsRefusedSendsNothing(crossing: Crossing) async throws {
        let client = try await client(crossing)
        let stream = try await client.request("POST", "/refused-expectation", [("expect", "100-continue")], ends: false)
        #expect(try await client.head(stream).status == 417)
        #expect(try await client.body(stream).ended == true)
        #expect(try await client.get("/echo").head.status == 200)
    }

    /// curl sends it again without the expectation (RFC 9110 section 10.1.1).
    @Test func whoIsRefusedAsksAgain() async throws {
        let file = try shared.bed.file("refused", Pattern.bytes(2_000_000))
        let run = try await shared.curl(
            .h1ToH2, "/refused-expectation", "-T", file, "--expect100-timeout", "60", "-w",
            "\n%{http_code} %{size_upload}")
        #expect(run.succeeded && run.output.hasSuffix("\n200 2000000"), "\(run)")
    }

    // MARK: Early responses

    /// The client is still uploading. Its response arrives complete.
    ///
    /// Over HTTP/2 without Content-Length: curl 7.88 ends an answered request short of it, which makes the stream
    /// malformed (RFC 9113 section 8.1.1), and nghttp2 resets that.
    @Test(arguments: Crossing.allCases) func anEarlyAnswerArrives(crossing: Crossing) async throws {
        let file = try shared.bed.file("early-\(crossing)", Pattern.bytes(8_000_000))
        let length = crossing.isClientHTTP2 ? "Content-Length:" : "Content-Length: 8000000"
        let run = try await shared.curl(crossing, "/early", "-i", "-T", file, "-H", "Expect:", "-H", length)
        #expect(run.output.contains("HTTP/\(crossing.version) 413") && run.output.hasSuffix("\r\n\r\nbig"), "\(run)")
    }

    /// The response ends its stream, and nothing else.
    @Test func afterAnEarlyAnswerTheRestIsNotWanted() async throws {
        let client = try await client(.h2ToH2)
        let stream = try await client.request("POST", "/early", ends: false)
        try await client.send(10_000, on: stream)
        #expect(try await client.head(stream).status == 413)
        let body = try await client.body(stream)
        #expect(body.text == "big\n" && body.ended == true, "\(body)")
        #expect(try await client.get("/echo").head.status == 200)
    }

    // MARK: Cookies

    /// Crumbs on the way over HTTP/2, one field in HTTP/1.1 (RFC 9113 section 8.2.3).
    @Test(arguments: [Crossing.h2ToH1, .h2ToH2]) func cookiesAreJoined(crossing: Crossing) async throws {
        let client = try await client(crossing)
        let (_, body) = try await client.get("/echo", [("cookie", "a=1"), ("cookie", "b=2; c=3"), ("cookie", "d=4")])
        let text = body.text ?? ""
        if crossing == .h2ToH1 {
            #expect(text.lowercased().contains("\"cookie: a=1; b=2; c=3; d=4\""), "\(text)")
        } else {
            for crumb in ["a=1", "b=2", "c=3", "d=4"] { #expect(text.contains("\"cookie: \(crumb)\""), "\(text)") }
        }
    }

    @Test func cookiesAreSplit() async throws {
        let run = try await shared.curl(.h1ToH2, "/echo", "-H", "Cookie: a=1; b=2; c=3")
        #expect(try ReceivedRequest(run).values("cookie") == ["a=1", "b=2", "c=3"], "\(run)")
    }

    /// Each Set-Cookie stays a separate field, whatever the versions.
    @Test(arguments: [Crossing.h1ToH2, .h2ToH2]) func cookiesThatAreSetStayApart(crossing: Crossing) async throws {
        let run = try await shared.curl(crossing, "/cookies", "-i")
        #expect(run.output.lowercased().components(separatedBy: "set-cookie: ").count == 3, "\(run)")
    }
}
