import PinproxyEventLoop
import PinproxyHTTPWire
import Testing

@testable import PinproxySession

/// The delays before a download is continued. No clock.
@Suite struct ResumptionTests {
    private func resumption(_ pauses: ResumptionPauses = ResumptionPauses()) throws -> Resumption {
        let response = try OwnedResponse(
            Array("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nAccept-Ranges: bytes\r\nETag: \"a\"\r\n\r\n".utf8))
        let request = try OwnedRequest(Array("GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n".utf8))
        return try #require(Resumption(response.view, to: request.view, pauses: pauses, on: try EventLoop()))
    }

    private func judge(_ resumption: Resumption, _ answer: String) throws -> Resumption.Answer {
        resumption.judge(try OwnedResponse(Array("HTTP/1.1 \(answer)\r\n\r\n".utf8)).view, at: 784_111_767)
    }

    /// In milliseconds.
    private func nextTries(_ resumption: Resumption, _ count: Int) -> [UInt64] {
        (0..<count).map { _ in resumption.nextTry() / 1_000_000 }
    }

    @Test func pausesGrowUntilSomethingComes() throws {
        let resumption = try resumption()
        #expect(!resumption.broke(after: 100))
        #expect(nextTries(resumption, 8) == [0, 250, 500, 1000, 2000, 4000, 8000, 8000])
        // A little progress doesn't earn another connection at once.
        #expect(!resumption.broke(after: Resumption.progress - 1))
        #expect(nextTries(resumption, 1) == [8000])
        #expect(resumption.broke(after: Resumption.progress))
        #expect(nextTries(resumption, 3) == [0, 250, 500])
    }

    @Test func pausesAreGiven() throws {
        var pauses = ResumptionPauses()
        (pauses.first, pauses.longest) = (3_000_000, 10_000_000)
        #expect(try nextTries(resumption(pauses), 5) == [0, 3, 6, 10, 10])
        let steps = (0..<100).map { ResumptionPauses().nanoseconds(after: $0) }
        #expect(steps.allSatisfy { $0 <= 8_000_000_000 })
    }

    @Test(arguments: [
        ("503 S\r\nRetry-After: 3", UInt64(3000)), ("429 S\r\nRetry-After: 60", 60_000), ("500 S\r\nRetry-After: 0", 0),
        ("503 S", 0),
        ("503 S\r\nRetry-After: soon", 0), ("503 S\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT", 10_000),
    ])
    func theOriginSaysWhen(_ answer: String, _ milliseconds: UInt64) throws {
        let resumption = try resumption()
        _ = nextTries(resumption, 1)
        guard case .notNow(_, let wait) = try judge(resumption, answer) else { throw Unexpected(text: answer) }
        #expect(wait == milliseconds * 1_000_000)
        resumption.postpone(wait)
        // Never less than the usual delay, and only once.
        #expect(nextTries(resumption, 2) == [max(milliseconds, 250), 500])
    }

    @Test(arguments: [
        "503 S\r\nRetry-After: 61", "503 S\r\nRetry-After: 9223372036854775807",
        "503 S\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT",
    ])
    func whoWantsTooLongIsNotWaitedFor(_ answer: String) throws {
        guard case .another(let cause) = try judge(resumption(), answer) else { throw Unexpected(text: answer) }
        #expect(cause.contains("asks for a retry after"))
    }
}
