import Foundation
import PinnedSession
import PinproxySerialization
import Testing

/// Bodies of responses: decoded within bounds, and read as they arrive.
@Suite(.timeLimit(.minutes(5)))
struct LibraryBodyTests {
    /// A request that is answered by these bytes.
    private func answered(
        by body: [UInt8], _ fields: String, at bed: LibraryBed, framing: String? = nil
    ) throws -> HTTPRequest {
        let framing = framing ?? "Content-Length: \(body.count)"
        let head = "HTTP/1.1 200 OK\r\n\(framing)\r\n\(fields)\r\n\r\n"
        return try HTTPRequest(bed.url + "/repeat", method: "POST", body: .bytes(Array(head.utf8) + body))
    }

    private func gzip(_ bytes: [UInt8], in bed: LibraryBed) async throws -> [UInt8] {
        let path = try bed.bed.file("plain", bytes)
        let run = try await bed.bed.run(["/usr/bin/gzip", "-f", "-k", path])
        #expect(run.succeeded, "\(run)")
        return Array(try Data(contentsOf: URL(fileURLWithPath: path + ".gz")))
    }

    @Test func aBodyIsDecoded() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let plain = pattern(300_000)
            let coded = try await gzip(plain, in: bed)
            let request = try answered(by: coded, "Content-Encoding: gzip", at: bed)
            let (body, response) = try await session.data(for: request)
            #expect(body == plain && response.isDecoded && response["content-encoding"] == "gzip")
            let chunked =
                Array("\(String(coded.count, radix: 16))\r\n".utf8) + coded + Array("\r\n0\r\n\r\n".utf8)
            let other = try answered(
                by: chunked, "Content-Encoding: x-gzip", at: bed, framing: "Transfer-Encoding: chunked")
            #expect(try await session.data(for: other).body == plain)
            let (stream, _) = try await session.bytes(for: request)
            #expect(try await stream.collect(upTo: 300_000) == plain)
            let file = bed.bed.path("file")
            var hooks = SessionHooks()
            hooks.response = { _, _ in .becomeDownload(to: file) }
            let storing = try bed.session(hooks: hooks)
            let result = try await storing.dataTask(for: request).result()
            #expect(result.response.isDecoded && result.body.isEmpty)
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: file))) == plain)
            let empty = try answered(by: [], "Content-Encoding: gzip", at: bed)
            #expect(try await session.data(for: empty).body == [])
        }
    }

    @Test func whatWasNotAskedForStays() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let coded = try await gzip(pattern(1000), in: bed)
            var own = try answered(by: coded, "Content-Encoding: gzip", at: bed)
            try own.set("Accept-Encoding", "gzip")
            let (body, response) = try await session.data(for: own)
            #expect(body == coded && !response.isDecoded)
            var part = try answered(by: coded, "Content-Encoding: gzip", at: bed)
            try part.set("Range", "bytes=0-")
            #expect(try await session.data(for: part).body == coded)
            let unasked = try answered(by: coded, "Content-Encoding: gzip, br", at: bed)
            #expect(try await session.data(for: unasked).body == coded)
            let off = try bed.session { $0.decodesBodies = false }
            let same = try answered(by: coded, "Content-Encoding: gzip", at: bed)
            #expect(try await off.data(for: same).body == coded)
            // A file is what the server has, so that it can be continued.
            let path = bed.bed.path("file")
            try await session.download(for: same, to: path)
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path))) == coded)
            let echo = try await session.download(for: HTTPRequest(bed.url + "/echo"), to: bed.bed.path("echo"))
            #expect(echo.status == 200)
            let asked = try Echo(Array(Data(contentsOf: URL(fileURLWithPath: bed.bed.path("echo")))))
            #expect(asked.field("accept-encoding") == nil)
        }
    }

    @Test func aBodyThatCannotBeDecodedIsAnError() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.maximumBodyLength = 5_000_000 }
            func code(_ body: [UInt8]) async throws -> Int? {
                let request = try answered(by: body, "Content-Encoding: gzip", at: bed)
                return await failure { _ = try await session.data(for: request) }?.code
            }
            let bomb = try await gzip([UInt8](repeating: 0, count: 50_000_000), in: bed)
            #expect(try await code(bomb) == -1011)
            let long = try await gzip((0..<6_000_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }, in: bed)
            let tooLong = try await code(long)
            #expect(tooLong == -1103 || tooLong == -1011)
            let coded = try await gzip(pattern(10_000), in: bed)
            for wrong in [Array(coded.dropLast()), coded + [0], coded + coded, [1, 2, 3]] {
                #expect(try await code(wrong) == -1011)
            }
            let (stream, _) = try await session.bytes(
                for: answered(by: Array(coded.dropLast()), "Content-Encoding: gzip", at: bed))
            #expect(await failure { _ = try await stream.collect(upTo: .max) }?.code == -1011)
        }
    }

    // MARK: As it arrives

    @Test func aBodyIsReadAsTheProgramReadsIt() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let length = 40_000_000
            let (body, response) = try await session.bytes(for: HTTPRequest(bed.url + "/told/\(length)"))
            #expect(response.status == 200 && response.metrics.transactions.isEmpty)
            // Other tasks complete, and this one waits for its reader.
            for _ in 0..<3 { _ = try await session.data(for: HTTPRequest(bed.url + "/large/\(length)")) }
            #expect(bed.origin.events.all("told").isEmpty)
            var count = 0
            for try await piece in body {
                #expect(!piece.isEmpty)
                count += piece.count
            }
            #expect(count == length)
            // It was read, and can't be read again.
            let error = await failure { for try await _ in body {} }
            #expect(error?.code == -1000)
        }
    }

    @Test func aReaderThatGoesTakesTheTaskAlong() async throws {
        try await withLibraryBed { bed in
            let ended = Collected<SessionError?>()
            var hooks = SessionHooks()
            hooks.completed = { _, _, error in ended.add(error) }
            let session = try bed.session(hooks: hooks)
            func read(_ name: String) async throws {
                let (body, _) = try await session.bytes(for: HTTPRequest(bed.url + "/held-gone/\(name)"))
                for try await piece in body {
                    #expect(piece == Array("[1, ".utf8))
                    break
                }
                try await eventually("\(name) to be cancelled") { ended.all.count >= 1 }
                withExtendedLifetime(body) {}
            }
            try await read("iterator")
            do { _ = try await session.bytes(for: HTTPRequest(bed.url + "/held-gone/unread")) }
            try await eventually("the unread one to be cancelled") { ended.all.count == 2 }
            let reading = Task {
                let (body, _) = try await session.bytes(for: HTTPRequest(bed.url + "/held-gone/task"))
                for try await _ in body {}
            }
            _ = try await bed.origin.events.first("held") { $0["name"] == "task" }
            reading.cancel()
            #expect(await failure { try await reading.value }?.code == -999)
            try await eventually("the task to be cancelled") { ended.all.count == 3 }
            #expect(ended.all.allSatisfy { if case .cancelled? = $0 { true } else { false } })
        }
    }

    @Test func anInterruptedStreamIsAnError() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.resumesBrokenDownloads = false }
            let (body, _) = try await session.bytes(for: HTTPRequest(bed.url + "/cut-short/length/400000"))
            var count = 0
            let error = await failure { for try await piece in body { count += piece.count } }
            #expect(error?.code == -1005 && count <= 400_000)
            let refused = await failure { _ = try await session.bytes(for: HTTPRequest("https://127.0.0.1:1/")) }
            #expect(refused != nil)
            let (long, _) = try await session.bytes(for: HTTPRequest(bed.url + "/large/1000000"))
            #expect(await failure { _ = try await long.collect(upTo: 999_999) }?.code == -1103)
            // Whatever the status.
            let (empty, response) = try await session.bytes(for: HTTPRequest(bed.url + "/status/204"))
            #expect(try await empty.collect(upTo: 0) == [] && response.status == 204)
        }
    }
}
