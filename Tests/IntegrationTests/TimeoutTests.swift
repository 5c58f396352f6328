import Testing

/// Everything that waits has a deadline. Each proxy here has one that is short, only as short as a busy
/// machine allows, and defaults beside it.
@Suite(.timeLimit(.minutes(5)))
struct TimeoutTests {
    private func prepare(_ bed: TestBed, _ timeout: String) async throws -> SharedBed {
        try await OriginBed.prepare(bed, sections: ["timeouts": [timeout]])
    }

    @Test func anOriginThatIsSilentInTheHandshake() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, "tls_handshake: 200ms")
            // The kernel accepts; nobody answers.
            let silent = try ListeningSocket()
            let answer = try await shared.proxy.connect(to: "origin.test:\(silent.port)")
            Expected.refused(504, "timeout").check(answer, host: "origin.test")
        }
    }

    @Test func anOriginThatIsSilentAfterTheRequest() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, "first_byte: 200ms")
            let run = try await shared.curl("-i", shared.url + "/silent")
            #expect(run.output.hasPrefix("HTTP/1.1 504 "), "\(run)")
            #expect(run.output.contains("http_response_timeout"), "\(run)")
        }
    }

    /// The first connection dies with the request; the second one takes longer to fail than a first byte may.
    @Test func anOriginThatStallsTheSecondTry() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["timeouts": ["first_byte: 500ms", "tls_handshake: 3s"]])
            let url = shared.url + "/die-and-stall"
            let run = try await shared.curl("-i", url, url)
            #expect(run.output.contains("HTTP/1.1 200 ") && run.output.contains("HTTP/1.1 504 "), "\(run)")
            #expect(run.output.contains("connection_timeout"), "\(run)")
            #expect(shared.origin?.events.all("stalled").count == 1)
        }
    }

    @Test func anOriginThatStopsWithinItsBody() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, "idle_client: 2s")
            let run = try await shared.curl(shared.url + "/hold/for-ever")
            #expect(!run.succeeded, "\(run)")
            #expect(run.output == "first,", "\(run)")
        }
    }

    @Test func aClientThatNeverFinishesItsHead() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, "idle_client: 2s")
            let connection = try RawConnection(to: shared.proxy)
            try await connection.send("GET / HTT")
            // An answer or none, but an end.
            let answer = String(decoding: try await connection.receiveAll(), as: UTF8.self)
            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 408 "), "\(answer)")
        }
    }

    @Test func aClientThatNeverBeginsItsHandshake() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, "tls_handshake: 3s")
            let connection = try RawConnection(to: shared.proxy)
            try await connection.send(
                "CONNECT \(shared.authority) HTTP/1.1\r\nHost: \(shared.authority)\r\n\r\n")
            #expect(try await connection.response().status == 200)
            try await connection.end()
        }
    }
}
