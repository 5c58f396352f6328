import Foundation
import Testing

/// Messages of every framing, relayed as they arrive: nothing lost, nothing added, nothing held back.
@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(5)))
struct StreamingTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private func exchange(_ bytes: String) async throws -> Run {
        try await shared.bed.secureExchange(via: shared.proxy, to: shared.authority, bytes)
    }

    private func request(_ method: String, _ target: String, _ fields: String = "Connection: close\r\n") -> String {
        "\(method) \(target) HTTP/1.1\r\nHost: \(shared.authority)\r\n\(fields)\r\n"
    }

    // MARK: Framing

    @Test func chunksKeepExtensionsAndTrailers() async throws {
        let run = try await exchange(request("GET", "/chunked"))
        for part in ["5;name=value\r\nhello\r\n", "7 ; q=\"a;b\"\r\n, world\r\n", "0;last\r\nX-Sum: 12\r\n\r\n"] {
            // Lines of the log have lost their LF only.
            #expect((run.output + "\n").contains(part), "\(run)")
        }
    }

    @Test func anUploadKeepsItsTrailers() async throws {
        let run = try await exchange(
            request("POST", "/echo", "Connection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n")
                + "3;a=b\r\nabc\r\n0\r\nX-End: yes\r\n\r\n")
        #expect(run.output.contains("\"length\": 3"), "\(run)")
        #expect(run.output.contains("X-End: yes"), "\(run)")
    }

    /// A recipient may merge trailers with the head: what frames, routes or authenticates has no place there.
    @Test func trailersThatBelongInTheHeadAreDropped() async throws {
        let up = try await exchange(
            request("POST", "/echo", "Connection: close\r\nTransfer-Encoding: chunked\r\n")
                + "3\r\nabc\r\n0\r\nHost: evil.test\r\nContent-Length: 9\r\nX-End: yes\r\n"
                + "transfer-encoding: chunked\r\nAuthorization: x\r\n\r\n")
        #expect(up.output.contains("\"trailers\": [\"X-End: yes\"]"), "\(up)")
        let down = try await exchange(
            request(
                "GET",
                raw(
                    "Transfer-Encoding: chunked\r\n",
                    "3\r\nabc\r\n0\r\nSet-Cookie: a=b\r\nX-End: yes\r\nContent-Length: 9\r\n\r\n")))
        #expect((down.output + "\n").hasSuffix("0\r\nX-End: yes\r\n\r\n"), "\(down)")
    }

    // MARK: Numbers

    @Test func numbersLoseTheirLeadingZeros() async throws {
        let up = try await exchange(
            request("POST", "/echo", "Connection: close\r\nContent-Length: 010\r\n") + "0123456789")
        #expect(up.output.contains("\"Content-Length: 10\""), "\(up)")
        let down = try await exchange(request("GET", raw("Content-Length: 003\r\n", "abc")))
        #expect(down.output.contains("Content-Length: 3\r\n"), "\(down)")
        let chunks = try await exchange(
            request("GET", raw("Transfer-Encoding: chunked\r\n", "0003;a=b\r\nabc\r\n000\r\n\r\n")))
        #expect((chunks.output + "\n").hasSuffix("\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n"), "\(chunks)")
    }

    private func raw(_ fields: String, _ body: String) -> String {
        "/raw/"
            + Data("HTTP/1.1 200 OK\r\n\(fields)\r\n\(body)".utf8).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
    }

    @Test(arguments: [("until-close/70000", 70_000), ("http10", 4), ("chunked", 12), ("large/3000000", 3_000_000)])
    func aBodyArrivesWhole(path: String, length: Int) async throws {
        for protocolOption in ["--http1.1", "--http1.0"] {
            let run = try await shared.curl(
                protocolOption, "-o", "/dev/null", "-w", "%{size_download}", "\(shared.url)/\(path)")
            #expect(run.succeeded && run.output == "\(length)", "\(run)")
        }
    }

    @Test(arguments: [
        ("HEAD", "/head-length", "200"), ("GET", "/status/204", "204"), ("GET", "/not-modified", "304"),
    ])
    func aResponseWithoutABodyEndsAtItsHead(method: String, path: String, status: String) async throws {
        // The second response must be found right after the first.
        let run = try await exchange(request(method, path, "") + request("GET", "/large/5"))
        #expect(run.output.hasPrefix("HTTP/1.1 \(status) "), "\(run)")
        #expect(run.output.count(of: "HTTP/1.1 200 OK") == (status == "200" ? 2 : 1), "\(run)")
        if status != "204" { #expect(run.output.contains("Content-Length: 1234"), "\(run)") }
    }

    @Test func earlyHintsPass() async throws {
        let run = try await exchange(request("GET", "/hints"))
        #expect(run.output.hasPrefix("HTTP/1.1 103 "), "\(run)")
        #expect(run.output.contains("hinted"), "\(run)")
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        let run = try await exchange(
            (1...20).map { request("GET", "/large/\($0)", "") }.joined() + request("GET", "/large/21"))
        let lengths = run.output.components(separatedBy: "Content-Length: ").dropFirst()
            .map { Int($0.prefix { $0.isNumber }) }
        #expect(lengths == (1...21).map { $0 }, "\(run)")
    }

    /// As many as an origin sends: they are forwarded one by one, even if several arrive together.
    @Test func thousandsOfInterimResponsesPass() async throws {
        let run = try await exchange(request("GET", "/interims/20000"))
        #expect(run.output.components(separatedBy: "HTTP/1.1 102 ").count == 20_001, "\(run.errors)")
        #expect(run.output.contains("at last"), "\(run.errors)")
    }

    /// More requests than the proxy reads ahead.
    @Test func pipelinedRequestsMayFillEveryBuffer() async throws {
        let padding = "X-Padding: \(String(repeating: "p", count: 1000))\r\n"
        let run = try await exchange(
            (1...150).map { request("GET", "/large/\($0)", padding) }.joined() + request("GET", "/large/151"))
        let lengths = run.output.components(separatedBy: "Content-Length: ").dropFirst()
            .map { Int($0.prefix { $0.isNumber }) }
        #expect(lengths == (1...151).map { $0 }, "\(run.errors)")
    }

    // MARK: Fields

    @Test func fieldsOfOneHopStayThere() async throws {
        let run = try await exchange(
            request(
                "GET", "/echo",
                "Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n"
                    + "TE: trailers, gzip\r\nProxy-Authorization: Basic eDp5\r\nX-End: 2\r\n"))
        for gone in ["X-Hop: 1", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "gzip"] {
            #expect(!run.output.contains(gone), "\(gone) in \(run)")
        }
        #expect(run.output.contains("X-End: 2"), "\(run)")
        #expect(run.output.range(of: #"Via: 1\.1 \w+"#, options: .regularExpression) != nil, "\(run)")
    }

    /// An origin that speaks in the proxy's name could forge a refusal.
    @Test func anOriginDoesNotSpeakForTheProxy() async throws {
        let forged = "Proxy-Status: pinproxy; error=tls_certificate_error\r\n"
        let run = try await exchange(
            request(
                "GET",
                raw(
                    "\(forged)Proxy-Status: cdn; details=\"a, b\", PINPROXY\r\nTransfer-Encoding: chunked\r\n",
                    "0\r\n\(forged)\r\n")))
        #expect(!run.output.lowercased().contains("pinproxy;") && !run.output.contains("PINPROXY"), "\(run)")
        #expect(run.output.contains("Proxy-Status: cdn; details=\"a, b\"\r\n"), "\(run)")
    }

    // MARK: Expectations

    @Test func theOriginDecidesWhetherToContinue() async throws {
        let file = try shared.bed.file("upload-\(UUID())", [UInt8](repeating: 7, count: 2_000_000))
        let run = try await shared.curl(
            "-v", "-H", "Expect: 100-continue", "--expect100-timeout", "30", "-T", file, shared.url + "/expectation")
        #expect(run.output.contains("\"length\": 2000000"), "\(run)")
        #expect(run.errors.contains("HTTP/1.1 100 Continue"), "\(run)")
        let origin = try #require(shared.origin)
        #expect(origin.events.all("impatient").isEmpty)
        let refused = try await shared.curl(
            "-v", "-H", "Expect: 100-continue", "--expect100-timeout", "30", "-T", file,
            shared.url + "/refused-expectation")
        #expect(refused.errors.contains("HTTP/1.1 417"), "\(refused)")
        #expect(!refused.errors.contains("100 Continue"), "\(refused)")
    }

    @Test func aFinalAnswerMayComeBeforeTheUploadEnds() async throws {
        let file = shared.bed.path("sparse-\(UUID())")
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        truncate(file, 200_000_000)
        let run = try await shared.curl("-H", "Expect:", "-i", "-T", file, shared.url + "/early")
        #expect(run.output.hasPrefix("HTTP/1.1 413 "), "\(run)")
        #expect(run.output.hasSuffix("big"), "\(run)")
    }

    // MARK: Interrupted

    @Test(arguments: ["length", "chunked", "close"])
    func aTruncatedBodyIsNeverPassedOffAsWhole(kind: String) async throws {
        for protocolOption in ["--http1.1", "--http1.0"] {
            let run = try await shared.curl(protocolOption, "\(shared.url)/truncated/\(kind)")
            #expect(!run.succeeded, "\(run)")
        }
    }

    @Test func aTruncatedHeadIsABadGateway() async throws {
        let run = try await shared.curl("-i", "\(shared.url)/truncated/head")
        #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)")
    }

    // MARK: Connections kept

    @Test func anIdleConnectionThatTheOriginClosedIsNoticed() async throws {
        for _ in 1...5 {
            let run = try await shared.curl("\(shared.url)/close-when-idle", "\(shared.url)/close-when-idle")
            #expect(run.output == "gone soon\ngone soon", "\(run)")
        }
    }

    @Test func aSafeRequestThatDiesOnAReusedConnectionIsSentAgain() async throws {
        let url = "\(shared.url)/die-when-reused"
        let run = try await shared.curl(url, url, url)
        #expect(run.output == "first\nfirst\nfirst", "\(run)")
    }

    @Test func connectionsAreUsedAgain() async throws {
        try await withTestBed { bed in
            // Each worker has its own idle connections.
            let own = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            for _ in 1...4 {
                #expect(try await own.curl(own.url + "/large/3").succeeded)
            }
            #expect(own.origin?.events.all("connection").count == 1)
            #expect(own.origin?.events.all("request").count == 4)
        }
    }

    /// NTLM and Negotiate authenticate a connection: another client's request on it would be the first one's.
    @Test(arguments: ["NTLM", "Negotiate"])
    func aConnectionThatWasAuthenticatedIsNotShared(scheme: String) async throws {
        try await withTestBed { bed in
            let own = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            let login = own.url + "/login/" + scheme
            #expect(try await own.curl("-H", "Authorization: \(scheme) secret", login, login).output == "hello\nhello")
            #expect(try await own.curl(login, own.url + "/large/3").succeeded)
            #expect(try await own.curl(own.url + "/large/3").succeeded)
            let origin = try #require(own.origin)
            try await eventually("five requests to be told of") { origin.events.all("request").count == 5 }
            let connections = origin.events.all("request").map { $0["connection"] }
            #expect(connections == ["1", "1", "2", "2", "3"])
        }
    }

    /// A POST that may have been acted on is not repeated behind the client's back.
    @Test func anUnsafeRequestIsNeverSentTwice() async throws {
        try await withTestBed { bed in
            let own = try await OriginBed.prepare(bed, sections: ["proxy": ["workers: 1"]])
            #expect(try await own.curl(own.url + "/die-when-reused").succeeded)
            let run = try await own.curl("-i", "-d", "pay", own.url + "/die-when-reused")
            let posts = own.origin?.events.all("request").count { $0["method"] == "POST" }
            #expect(posts == 1, "\(run)")
        }
    }
}
