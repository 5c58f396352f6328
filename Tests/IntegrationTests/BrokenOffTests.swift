import Foundation
import Testing

/// Responses that break off: what came is delivered, however slowly the client reads, and the cut is seen.
@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(1)))
struct BrokenOffTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    /// A client that reads nothing until the proxy has given the exchange up. All of it fits into the buffers
    /// of the kernel.
    private func slowDownload(_ path: String, version: String) async throws -> (bytes: [UInt8], wasReset: Bool) {
        let connection = try RawConnection(to: shared.proxy)
        try await connection.send(
            "GET \(shared.plainURL)\(path) HTTP/\(version)\r\nHost: \(OriginBed.name):\(shared.secondOriginPort)\r\n\r\n")
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
            let run = try await shared.curl(option, shared.url + "/raw/" + encoded("5\r\nhello\r\nZZ\r\nabc\r\n0\r\n\r\n"))
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

    /// The origin answers, and resets while the client still sends: the answer counts.
    @Test(arguments: [true, false]) func anAnswerSurvivesTheResetAfterIt(secure: Bool) async throws {
        let file = shared.bed.path("sparse-\(UUID())")
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        truncate(file, 50_000_000)
        let url = secure ? shared.url : shared.plainURL
        for _ in 1...5 {
            let run = try await shared.curl("-H", "Expect:", "-i", "-T", file, url + "/early-reset")
            #expect(run.output.hasPrefix("HTTP/1.1 413 "), "\(run)")
            #expect(run.output.hasSuffix("big"), "\(run)")
        }
    }
}
