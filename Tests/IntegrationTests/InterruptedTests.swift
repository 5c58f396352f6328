import Foundation
import Testing

/// Interrupted responses: what arrived is delivered, however slowly the client reads, and the client notices the cut.
@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(5)))
struct InterruptedTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// A client that reads nothing until the proxy has given up the exchange. The kernel's buffers hold all of it.
    private func slowDownload(_ path: String, version: String) async throws -> (bytes: [UInt8], wasReset: Bool) {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            """
            GET \(shared.plainURL)\(path) HTTP/\(version)\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n\r\n
            """
        )
        let event = try await shared.proxy.events.first("exchange") { $0["path"] == path }
        #expect(event["cause"]?.contains("middle") == true, "\(event)")
        return try await connection.receiveUntilCut()
    }

    @Test func aSlowClientGetsAllThatCame() async throws {
        let (bytes, _) = try await slowDownload("/cut-short/length/600001", version: "1.1")
        #expect(bytes.count { $0 == UInt8(ascii: "#") } == 600_001)
        let chunked = try await slowDownload("/cut-short/chunked/600002", version: "1.1").bytes
        #expect(chunked.count { $0 == UInt8(ascii: "#") } == 600_002)
        #expect(!String(decoding: chunked.suffix(5), as: UTF8.self).contains("0"), "ended as if it were whole")
    }

    /// The end of the connection is all that such a client sees of a body's end: it has to be a reset.
    @Test func aClientWithoutChunksSeesAReset() async throws {
        let (bytes, wasReset) = try await slowDownload("/cut-short/chunked/600003", version: "1.0")
        #expect(bytes.count { $0 == UInt8(ascii: "#") } == 600_003)
        #expect(wasReset)
    }

    @Test func aBadChunkEndsABodyAfterTheGoodOnes() async throws {
        for (option, good) in [("--http1.1", "hello"), ("--http1.0", "hello")] {
            let run = try await shared.curl(
                option, shared.url + "/raw/" + encoded("5\r\nhello\r\nZZ\r\nabc\r\n0\r\n\r\n"))
            #expect(run.output == good && !run.succeeded, "\(run)")
        }
    }

    @Test func aBadFirstChunkIsABadGateway() async throws {
        for option in ["--http1.1", "--http1.0"] {
            let run = try await shared.curl("-i", option, shared.url + "/raw/" + encoded("ZZ\r\nabc\r\n0\r\n\r\n"))
            #expect(run.output.hasPrefix("HTTP/1.1 502 "), "\(run)")
            #expect(run.output.contains("a chunk size that is not a hexadecimal number"), "\(run)")
        }
    }

    private func encoded(_ body: String) -> String {
        Data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(body)".utf8).base64EncodedString()
            .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
    }

    /// A client slowly reads a response after which the connection closes.
    @Test func aSlowClientGetsAllBeforeAnOrderlyEnd() async throws {
        try await withTestBed { bed in
            let own = try await OriginBed.prepare(bed)
            let connection = try RawConnection(to: own.proxy)
            try await connection.send(
                "GET \(own.plainURL)/large/600000 HTTP/1.1\r\nHost: \(OriginBed.name):\(own.secondOriginPort)\r\n"
                    + "Connection: close\r\n\r\n")
            _ = try await own.proxy.events.first("exchange")
            // The proxy waits a while for the client to close.
            try await eventually("the proxy to close the client's connection") {
                try own.proxy.openSockets(to: connection.localPort) == 0
            }
            let (bytes, wasReset) = try await connection.receiveUntilCut()
            #expect(bytes.count > 600_000 && !wasReset)
        }
    }

    /// The origin answers and resets. The proxy learns of it by a failed write.
    @Test(arguments: [true, false]) func anAnswerSurvivesTheResetAfterIt(secure: Bool) async throws {
        let answer = try await earlyAnswer("length", secure: secure)
        #expect(answer.hasPrefix("HTTP/1.1 413 "), "\(answer)")
        #expect(answer.hasSuffix("\r\n\r\nbig\n"), "\(answer)")
    }

    /// If only a close ends the response, a reset doesn't, even if a write noticed it first.
    @Test(arguments: [true, false]) func aResetEndsNoBody(secure: Bool) async throws {
        let answer = try await earlyAnswer("close", secure: secure)
        #expect(answer.hasPrefix("HTTP/1.1 413 ") && answer.contains("big\n"), "\(answer)")
        #expect(!answer.hasSuffix("0\r\n\r\n"), "\(answer)")
    }

    /// Everything received by a client that uploads to an origin which answers and resets while the proxy is stopped.
    private func earlyAnswer(_ kind: String, secure: Bool) async throws -> String {
        try await withTestBed { bed in
            let own = try await OriginBed.prepare(bed)
            let origin = try #require(secure ? own.origin : own.plainOrigin)
            let connection = try RawConnection(to: own.proxy)
            let authority = "\(OriginBed.name):\(origin.port)"
            try await connection.send(
                """
                PUT \(secure ? "https" : "http")://\(authority)/early-reset/\(kind)/it HTTP/1.1\r\nHost: \
                \(authority)\r\n
                """
                    + "Content-Length: 1000000\r\n\r\n")
            _ = try await origin.events.first("held")
            own.proxy.process.send(signal: SIGSTOP)
            try await connection.send([UInt8](repeating: 7, count: 50_000))
            let released = try await bed.run([
                "curl", "-sS", "--cacert", bed.path("roots.pem"), "--resolve", "\(authority):127.0.0.1",
                "\(secure ? "https" : "http")://\(authority)/release/it",
            ])
            #expect(released.succeeded, "\(released)")
            _ = try await origin.events.first("reset")
            own.proxy.process.send(signal: SIGCONT)
            return String(decoding: try await connection.receiveUntilCut().bytes, as: UTF8.self)
        }
    }
}
