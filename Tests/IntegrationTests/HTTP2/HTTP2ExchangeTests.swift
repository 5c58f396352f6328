import Foundation
import Testing

/// Requests and responses of every form, with HTTP/2 on the client's side, the origin's, or both.
@Suite(.sharedBed(HTTP2Bed.prepare), .timeLimit(.minutes(5)))
struct HTTP2ExchangeTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// Makes a request, and returns the views of the origin and of the client.
    private func exchange(
        _ crossing: Crossing, _ arguments: String..., path: String = "/echo"
    ) async throws -> (ReceivedRequest, Run) {
        let run = try await shared.bed.curl(
            via: shared.proxy,
            [crossing.option, "-w", "%{stderr}%{http_version} %{http_code}"] + arguments + [shared.url(crossing, path)])
        return (try ReceivedRequest(run), run)
    }

    @Test(arguments: Crossing.allCases) func eachSideSpeaksWhatItChose(crossing: Crossing) async throws {
        let (received, run) = try await exchange(crossing, path: "/echo?a=b%20c")
        #expect(run.errors == "\(crossing.version) 200", "\(run)")
        #expect(received.method == "GET" && received.target == "/echo?a=b%20c" && received.length == 0, "\(received)")
        let authority = shared.authority(of: crossing.host)
        if crossing == .h2ToH1 {
            #expect(received.values("Host") == [authority], "\(received)")
            #expect(received.values("Via").map { $0.hasPrefix("2 ") } == [true], "\(received)")
        } else {
            #expect(received.values(":authority") == [authority] && received.values("host") == [], "\(received)")
            #expect(received.values(":scheme") == ["https"], "\(received)")
            #expect(
                received.values("via").map { $0.hasPrefix(crossing.isClientHTTP2 ? "2 " : "1.1 ") } == [true],
                "\(received)")
        }
    }

    @Test(arguments: Crossing.allCases) func aBodyOfKnownLengthArrives(crossing: Crossing) async throws {
        let file = try shared.bed.file("known-\(crossing)", Pattern.bytes(300_001))
        let (received, run) = try await exchange(crossing, "--data-binary", "@\(file)", "-H", "Expect:")
        #expect(received.method == "POST" && received.length == 300_001, "\(run)")
        let digest = try await shared.sha256(file)
        #expect(received.sha256 == digest, "\(run)")
        #expect(
            received.values("Content-Length") == ["300001"] && received.values("Transfer-Encoding") == [], "\(received)"
        )
    }

    /// HTTP/1.1 sends it in chunks, HTTP/2 as it is.
    @Test(arguments: Crossing.allCases) func aBodyOfUnknownLengthArrives(crossing: Crossing) async throws {
        let file = try shared.bed.file("unknown-\(crossing)", Pattern.bytes(300_001))
        let run = try await shared.bed.run(
            [
                "/bin/sh", "-c", "curl -sS -H Expect: -T - $0 $1 < $2", crossing.option, shared.url(crossing, "/echo"),
                file,
            ],
            environment: shared.proxy.clientEnvironment)
        let received = try ReceivedRequest(run)
        #expect(received.method == "PUT" && received.length == 300_001, "\(run)")
        let digest = try await shared.sha256(file)
        #expect(received.sha256 == digest, "\(run)")
        #expect(received.values("Content-Length") == [], "\(received)")
        #expect(received.values("Transfer-Encoding") == (crossing == .h2ToH1 ? ["chunked"] : []), "\(received)")
    }

    /// A method that usually has a body, without one.
    @Test(arguments: Crossing.allCases) func anEmptyBodyIsNoOpenOne(crossing: Crossing) async throws {
        let (received, run) = try await exchange(crossing, "-X", "POST")
        #expect(received.method == "POST" && received.length == 0, "\(run)")
        #expect(received.values("Transfer-Encoding") == [], "\(received)")
        let (empty, _) = try await exchange(crossing, "--data-binary", "")
        #expect(empty.method == "POST" && empty.length == 0 && empty.values("Content-Length") == ["0"], "\(empty)")
    }

    @Test(arguments: Crossing.allCases) func theAnswerToHeadIsItsHead(crossing: Crossing) async throws {
        let run = try await shared.curl(crossing, "/head-length", "-I")
        #expect(run.succeeded && run.output.lowercased().contains("content-length: 1234"), "\(run)")
    }

    @Test(arguments: Crossing.allCases, [204, 205, 304]) func aStatusWithoutBodyHasNone(
        crossing: Crossing, status: Int
    ) async throws {
        let path = status == 304 ? "/not-modified" : "/status/\(status)"
        // Twice, on one connection.
        let run = try await shared.bed.curl(
            via: shared.proxy,
            [crossing.option, "-i", "-m", "60", shared.url(crossing, path), shared.url(crossing, path)])
        #expect(run.succeeded, "\(run)")
        let heads = run.output.components(separatedBy: "HTTP/").dropFirst()
        #expect(heads.count == 2 && heads.allSatisfy { $0.hasPrefix("\(crossing.version) \(status)") }, "\(run)")
        let ends = heads.map { $0.components(separatedBy: "\r\n\r\n").dropFirst().joined() }
        #expect(ends == ["", ""], "\(run)")
    }

    /// Byte by byte, much more than the windows and buffers on the way.
    @Test(arguments: Crossing.allCases) func aLargeDownloadIsWhole(crossing: Crossing) async throws {
        let length = 24_000_007
        let file = shared.bed.path("down-\(crossing)")
        let run = try await shared.curl(crossing, "/large/\(length)", "-o", file)
        #expect(run.succeeded, "\(run)")
        #expect(try Pattern.isWhole(file, length), "\(crossing)")
    }

    @Test(arguments: Crossing.allCases) func aLargeUploadIsWhole(crossing: Crossing) async throws {
        let length = 24_000_007
        let file = try shared.bed.file("up-\(crossing)", Pattern.bytes(length))
        let (received, run) = try await exchange(crossing, "-T", file, "-H", "Expect:")
        let digest = try await shared.sha256(file)
        #expect(received.length == length && received.sha256 == digest, "\(run)")
    }

    /// Both at one time: the response begins before the request has ended.
    @Test func aBodyGoesBothWaysAtOneTime() async throws {
        let client = try await HTTP2Client(in: shared, authority: shared.authority(of: "h2.test"))
        let stream = try await client.request("POST", "/duplex", ends: false)
        #expect(try await client.head(stream).status == 200)
        for round in 1...3 {
            try await client.send(65_536, on: stream)
            #expect(try await client.body(stream, atLeast: round * 65_536).count == round * 65_536)
        }
        try await client.send("", on: stream, ends: true)
        let body = try await client.body(stream)
        #expect(
            body.ended == true && body.isPattern == true && body.trailers == [["x-length", "\(3 * 65_536)"]], "\(body)")
    }

    /// Fields of one connection are not forwarded, in either direction.
    @Test(arguments: Crossing.allCases) func fieldsOfTheConnectionStay(crossing: Crossing) async throws {
        let (received, run) = try await exchange(
            crossing, "-H", "X-Kept: yes", "-H", "TE: trailers", "-H", "Proxy-Authorization: Basic secret", "-H",
            "X-Mixed: A, b")
        #expect(received.values("X-Kept") == ["yes"] && received.values("X-Mixed") == ["A, b"], "\(run)")
        // An offer to this hop's sender is that of the next one (RFC 9110 section 10.1.4).
        #expect(received.values("TE") == ["trailers"], "\(run)")
        #expect(received.values("Connection") == (crossing == .h2ToH1 ? ["TE"] : []), "\(received)")
        for name in ["Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Upgrade", "HTTP2-Settings"] {
            #expect(received.values(name) == [], "\(name): \(received)")
        }
        let names = received.lines.map { $0.drop { $0 == ":" }.prefix { $0 != ":" } }
        if crossing != .h2ToH1 { #expect(names.allSatisfy { $0 == $0.lowercased() }, "\(received)") }
    }
}
