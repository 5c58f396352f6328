import Foundation
import Testing

/// An origin that refuses `Expect: 100-continue` (RFC 9110 section 10.1.1).
@Suite(.sharedBed(OriginBed.prepare), .timeLimit(.minutes(5)))
struct ExpectationTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    @Test(arguments: [true, false]) func curlTriesAgainWithoutTheExpectation(secure: Bool) async throws {
        // Above 1 MiB curl sends Expect unasked, and then knows how to handle a 417.
        let file = try shared.bed.file("upload-\(UUID())", [UInt8](repeating: 7, count: 2_000_000))
        let url = secure ? shared.url : shared.plainURL
        let run = try await shared.curl("-v", "--expect100-timeout", "30", "-T", file, url + "/refused-expectation")
        #expect(run.errors.contains("HTTP/1.1 417"), "\(run)")
        #expect(run.output.contains("\"length\": 2000000"), "\(run)")
    }

    /// The client may send its body anyway: no byte of it may be taken for a request.
    @Test func theBodyIsNoRequest() async throws {
        let connection = try RawConnection(to: shared.proxy)
        let host = "\(OriginBed.name):\(shared.secondOriginPort)"
        let body = "GET \(shared.plainURL)/smuggled HTTP/1.1\r\nHost: \(host)\r\n\r\n"
        try await connection.send(
            "PUT \(shared.plainURL)/refused-expectation HTTP/1.1\r\nHost: \(host)\r\nExpect: 100-continue\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n")
        #expect(try await connection.response().status == 417)
        try await connection.send(body)
        let rest = try await connection.receiveUntilCut().bytes
        #expect(rest.isEmpty, "\(String(decoding: rest, as: UTF8.self))")
        let origin = try #require(shared.plainOrigin)
        #expect(!origin.events.all("request").contains { $0["target"] == "/smuggled" })
    }
}
