import Foundation
import PinnedSession
import Synchronization
import Testing

/// Controls running tasks from a program, and observes their events.
@Suite(.timeLimit(.minutes(5)))
struct LibraryTaskTests {
    @Test func aCancelledSwiftTaskCancelsItsRequest() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let path = bed.bed.path("cancelled/file")
            try bed.bed.file("cancelled/other", "")
            let request = try HTTPRequest(bed.url + "/held-gone/cancel")
            let waiting = Task { await failure { try await session.download(for: request, to: path) } }
            _ = try await bed.origin.events.first("held") { $0["name"] == "cancel" }
            waiting.cancel()
            guard case .cancelled? = await waiting.value else { return note("not cancelled") }
            // The origin sees that its client has gone.
            _ = try await bed.origin.events.first("closed")
            try await eventually("the file to be gone") { try bed.files(in: bed.bed.path("cancelled")) == ["other"] }
            // One that is cancelled before it began sends nothing.
            let early = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/never")) }
            }
            guard case .cancelled? = await early.value else { return note("not cancelled") }
            #expect(try await !bed.targets().contains("/never"))
        }
    }

    @Test func aTaskCanBeCancelledAtAnyTime() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let fresh = session.dataTask(for: try HTTPRequest(bed.url + "/never"))
            fresh.cancel()
            guard case .cancelled? = await failure({ _ = try await fresh.result() }) else {
                return note("not cancelled")
            }
            for name in ["a", "b"] {
                let task = session.dataTask(for: try HTTPRequest(bed.url + "/held-gone/\(name)"))
                task.resume()
                _ = try await bed.origin.events.first("held") { $0["name"] == name }
                if name == "b" { task.suspend() }
                task.cancel()
                task.cancel()
                guard case .cancelled? = await failure({ _ = try await task.result() }) else {
                    return note("not cancelled")
                }
                #expect(task.state == .completed)
                task.resume()
                task.suspend()
                #expect(task.state == .completed)
            }
            #expect(try await !bed.targets().contains("/never"))
        }
    }

    @Test func nothingMovesWhileATaskIsSuspended() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let task = session.dataTask(for: try HTTPRequest(bed.url + "/hold/pause"))
            task.resume()
            for await progress in task.progress where progress.received == 6 { break }
            task.suspend()
            #expect(task.state == .suspended)
            // The remainder arrives while other tasks continue.
            for _ in 0..<3 { _ = try await session.data(for: HTTPRequest(bed.url + "/release/pause")) }
            var iterator = task.progress.makeAsyncIterator()
            #expect(await iterator.next()?.received == 6)
            task.resume()
            #expect(try await task.result().body == Array("first,second".utf8))
        }
    }

    @Test func aTaskThatIsSuspendedAtOnceSendsNothing() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let task = session.dataTask(for: try HTTPRequest(bed.url + "/later"))
            task.resume()
            task.suspend()
            for _ in 0..<3 { _ = try await session.data(for: HTTPRequest(bed.url + "/fence")) }
            #expect(try await !bed.targets().contains("/later"))
            task.resume()
            #expect(try await task.result().response.status == 200)
        }
    }

    @Test func theResponseHookDecides() async throws {
        try await withLibraryBed { bed in
            let path = bed.bed.path("became")
            var hooks = SessionHooks()
            hooks.response = { response, task in
                if response["x-kept"] == "yes" { return .cancel }
                return task.request.url.contains("/large/") ? .becomeDownload(to: path) : .allow
            }
            let session = try bed.session(hooks: hooks)
            let result = try await session.dataTask(for: HTTPRequest(bed.url + "/large/100000")).result()
            #expect(result.body.isEmpty && result.file == path)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path)).count == 100_000)
            for target in [
                "/status/204", "/answer/x/" + encoded("HTTP/1.1 200 OK\r\nX-Kept: yes\r\nContent-Length: 3\r\n\r\nabc"),
            ] {
                let error = await failure { _ = try await session.data(for: HTTPRequest(bed.url + target)) }
                guard case .cancelled? = error else {
                    Issue.record("\(target): \(String(describing: error))")
                    continue
                }
            }
        }
    }

    @Test func completionIsToldOnceForEachTaskThatBegan() async throws {
        try await withLibraryBed { bed in
            let told = Collected<(UInt64, Int, Int?)>()
            var hooks = SessionHooks()
            hooks.completed = { task, metrics, error in told.add((task.id, metrics.transactions.count, error?.code)) }
            let session = try bed.session(hooks: hooks)
            _ = try await session.data(for: HTTPRequest(bed.url + "/echo"))
            _ = await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/truncated/length")) }
            _ = await failure { _ = try await session.data(for: HTTPRequest("nowhere")) }
            session.dataTask(for: try HTTPRequest(bed.url + "/never")).cancel()
            #expect(told.all.map(\.0) == [1, 2, 3] && told.all.map(\.1) == [1, 1, 0])
            #expect(told.all.map(\.2) == [nil, -1005, -1000])
        }
    }

    /// A hook may create tasks, and end others.
    @Test func hooksMayUseTheSession() async throws {
        try await withLibraryBed { bed in
            let holder = Mutex<SessionManager?>(nil)
            let made = Collected<SessionTask>()
            let url = bed.url + "/from-hook"
            var hooks = SessionHooks()
            hooks.response = { response, task in
                guard !task.request.url.hasSuffix("/from-hook") else { return .allow }
                if let session = holder.withLock({ $0 }), let request = try? HTTPRequest(url) {
                    let other = session.dataTask(for: request)
                    other.resume()
                    made.add(other)
                }
                task.cancel()
                return .allow
            }
            let session = try bed.session(hooks: hooks)
            holder.withLock { $0 = session }
            _ = await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/large/1000000")) }
            let other = try #require(made.all.first)
            #expect(try await other.result().response.status == 200)
            holder.withLock { $0 = nil }
        }
    }

    // MARK: The end of a session

    /// Says when it goes.
    private final class Witness: Sendable {
        private let gone: AsyncStream<Void>.Continuation
        init(_ gone: AsyncStream<Void>.Continuation) { self.gone = gone }
        deinit { gone.finish() }
    }

    @Test func aSessionThatNobodyHoldsEndsItsTasksAndItself() async throws {
        try await withLibraryBed { bed in
            let (gone, continuation) = AsyncStream.makeStream(of: Void.self)
            var tasks: [SessionTask] = []
            do {
                var hooks = SessionHooks()
                let witness = Witness(continuation)
                hooks.completed = { _, _, _ in withExtendedLifetime(witness) {} }
                let session = try bed.session(hooks: hooks) { $0.maximumConnectionsPerHost = 50 }
                for number in 0..<20 {
                    let request = try HTTPRequest(bed.url + "/held-gone/\(number)")
                    let download = session.downloadTask(for: request, to: bed.bed.path("gone/\(number)"))
                    tasks.append(number % 2 == 0 ? session.dataTask(for: request) : download)
                }
                try bed.bed.file("gone/other", "")
                let stream = RequestBody.stream { RequestBody.Stream { _ in } }
                tasks.append(session.uploadTask(for: try HTTPRequest(bed.url + "/echo", method: "PUT"), from: stream))
                for task in tasks { task.resume() }
                for number in 0..<20 { _ = try await bed.origin.events.first("held") { $0["name"] == "\(number)" } }
                tasks[3].suspend()
                // One that never began.
                tasks.append(session.dataTask(for: try HTTPRequest(bed.url + "/never")))
            }
            for task in tasks {
                guard case .invalidated? = await failure({ _ = try await task.result() }) else {
                    return note("not ended")
                }
            }
            tasks = []
            // The session's thread has released its objects.
            for await _ in gone {}
            try await eventually("the files to be gone") { try bed.files(in: bed.bed.path("gone")) == ["other"] }
            #expect(try await !bed.targets().contains("/never"))
        }
    }

    @Test func aSessionCanBeEnded() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let held = session.dataTask(for: try HTTPRequest(bed.url + "/hold/end"))
            held.resume()
            _ = try await bed.origin.events.first("held") { $0["name"] == "end" }
            session.finishTasksAndInvalidate()
            guard
                case .invalidated? = await failure({ _ = try await session.data(for: HTTPRequest(bed.url + "/never")) })
            else { return note("a task began after the end") }
            let other = try bed.session()
            _ = try await other.data(for: HTTPRequest(bed.url + "/release/end"))
            #expect(try await held.result().body == Array("first,second".utf8))

            let second = other.dataTask(for: try HTTPRequest(bed.url + "/hold/never"))
            second.resume()
            _ = try await bed.origin.events.first("held") { $0["name"] == "never" }
            other.invalidate()
            other.invalidate()
            guard case .invalidated? = await failure({ _ = try await second.result() }) else {
                return note("not ended")
            }
            #expect(try await !bed.targets().contains("/never"))
        }
    }
}
