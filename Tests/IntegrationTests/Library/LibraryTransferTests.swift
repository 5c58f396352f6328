import Foundation
import PinnedSession
import Testing

/// Uploads and downloads of a Swift program's tasks, with what may go wrong with their files.
@Suite(.timeLimit(.minutes(5)))
struct LibraryTransferTests {
    @Test func aFileIsUploadedWithProgress() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let path = try bed.bed.file("upload", pattern(5_000_000))
            let task = session.uploadTask(for: try HTTPRequest(bed.url + "/echo", method: "PUT"), from: .file(path))
            #expect(task.state == .suspended)
            let seen = Task { await task.progress.reduce(into: [TransferProgress]()) { $0.append($1) } }
            let echo = try Echo(try await task.result().body)
            let sum = try await bed.bed.run(["/usr/bin/sha256sum", path])
            #expect(sum.output.hasPrefix(echo.sha256) && echo.length == 5_000_000)
            #expect(echo.field("content-length") == "5000000" && task.state == .completed)
            let progress = await seen.value
            #expect(progress.last?.sent == 5_000_000 && progress.last?.sentTotal == 5_000_000)
            #expect(zip(progress, progress.dropFirst()).allSatisfy { $0.sent <= $1.sent })
            // Who comes late sees the end.
            let late = await task.progress.reduce(into: [TransferProgress]()) { $0.append($1) }
            #expect(late == [progress.last])
        }
    }

    @Test func aBodyThatCannotBeReadFails() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            func upload(_ body: RequestBody) async -> SessionError? {
                await failure {
                    _ = try await session.upload(for: HTTPRequest(bed.url + "/echo", method: "PUT"), from: body)
                }
            }
            struct Broken: Error {}
            let bodies: [RequestBody] = [
                .file("/nowhere"), .file("/tmp"), .stream { nil },
                .stream(length: 3) {
                    RequestBody.Stream {
                        $0.yield([1])
                        $0.finish()
                    }
                },
                .stream(length: 1) {
                    RequestBody.Stream {
                        $0.yield([1, 2])
                        $0.finish()
                    }
                },
                .stream {
                    RequestBody.Stream {
                        $0.yield([1])
                        $0.finish(throwing: Broken())
                    }
                },
            ]
            for body in bodies {
                let error = await upload(body)
                guard case .requestBody? = error else {
                    Issue.record("\(body): \(String(describing: error))")
                    continue
                }
            }
            let chunks = RequestBody.stream {
                RequestBody.Stream {
                    $0.yield([])
                    $0.yield([1, 2])
                    $0.yield([])
                    $0.finish()
                }
            }
            let echo = try await Echo(
                session.upload(for: HTTPRequest(bed.url + "/echo", method: "PUT"), from: chunks).body)
            #expect(echo.length == 2 && echo.field("transfer-encoding") == "chunked")
            let nothing = try await Echo(session.data(for: HTTPRequest(bed.url + "/echo", method: "POST")).body)
            #expect(nothing.field("content-length") == "0")
        }
    }

    @Test func aDownloadIsMovedIntoPlace() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let directory = bed.bed.path("downloads")
            try bed.bed.file("downloads/file", "old")
            let response = try await session.download(
                for: HTTPRequest(bed.url + "/large/3000000"), to: directory + "/file")
            #expect(response.status == 200 && response.metrics.transactions.count == 1)
            let bytes = try Data(contentsOf: URL(fileURLWithPath: directory + "/file"))
            #expect(bytes.count == 3_000_000 && bytes[257] == 1)
            #expect(
                try await session.download(for: HTTPRequest(bed.url + "/status/204"), to: directory + "/empty").status
                    == 204)
            #expect(try bed.files(in: directory) == ["empty", "file"])
        }
    }

    @Test func whatIsNotWholeLeavesTheFileAsItWas() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let directory = bed.bed.path("downloads")
            let path = try bed.bed.file("downloads/file", "old")
            func download(_ target: String, to path: String) async -> SessionError? {
                await failure { try await session.download(for: HTTPRequest(bed.url + target), to: path) }
            }
            guard case .connectionLost? = await download("/cut-short/length/400000", to: path) else {
                return note("a part was taken for the whole")
            }
            guard
                case .unacceptableStatus(let response)? = await download(
                    "/answer/404/" + encoded("HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone"), to: path)
            else { return note("an error page was stored") }
            #expect(response.status == 404)
            for wrong in [directory, directory + "/", directory + "/missing/file", ""] {
                let error = await download("/large/3000000", to: wrong)
                guard case .file? = error else {
                    Issue.record("\(wrong): \(String(describing: error))")
                    continue
                }
            }
            try await eventually("the files to be gone") { try bed.files(in: directory) == ["file"] }
            #expect(try bed.bed.contents("downloads/file") == "old")
        }
    }

    @Test func anInterruptedDownloadIsContinued() async throws {
        try await withLibraryBed { bed in
            let breaking = try await bed.peer("breaking_origin.py")
            let url = "https://api.localhost:\(breaking.port)"
            let session = try bed.session()
            let path = bed.bed.path("whole")
            let response = try await session.download(for: HTTPRequest(url + "/file/5000000/700000"), to: path)
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path))) == pattern(5_000_000))
            #expect(response.status == 200 && response.metrics.transactions.count == 8)
            let ranges = breaking.events.all("request").compactMap { $0["range"] }
            #expect(
                ranges.first == "none" && ranges.dropFirst().allSatisfy { $0.hasPrefix("bytes=") } && ranges.count == 8)
            let (body, _) = try await session.data(for: HTTPRequest(url + "/file/500000/200000"))
            #expect(body == pattern(500_000))
            // Another entity is not put together with the first; and who doesn't want it needn't.
            let without = try bed.session { $0.resumesBrokenDownloads = false }
            for (session, target) in [
                (session, "/changing/500000/200000"), (session, "/plain/500000/200000"),
                (without, "/file/500000/200000"),
            ] {
                let error = await failure { try await session.download(for: HTTPRequest(url + target), to: path) }
                guard case .connectionLost? = error else {
                    Issue.record("\(target): \(String(describing: error))")
                    continue
                }
            }
            #expect(try Array(Data(contentsOf: URL(fileURLWithPath: path))) == pattern(5_000_000))
        }
    }
}
