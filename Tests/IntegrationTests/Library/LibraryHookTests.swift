import Foundation
import PinnedSession
import PinproxySecurity
import PinproxySerialization
import PinproxyTestAuthority
import Synchronization
import Testing

/// Hooks that take their time, that never answer, and those of a task's and a session's course.
@Suite(.timeLimit(.minutes(5)))
struct LibraryHookTests {
    /// Opened by a test; a hook waits for it.
    private final class Gate: Sendable {
        private let stream: AsyncStream<Void>
        private let opener: AsyncStream<Void>.Continuation
        init() { (stream, opener) = AsyncStream.makeStream(of: Void.self) }
        func open() { opener.finish() }
        func passed() async { for await _ in stream {} }
    }

    @Test func decisionsTakeTheirTime() async throws {
        try await withLibraryBed { bed in
            let (gate, asked) = (Gate(), Collected<String>())
            var hooks = SessionHooks()
            hooks.redirect = { redirect in
                asked.add("redirect")
                guard redirect.to.hasSuffix("/echo") else { return .follow }
                await gate.passed()
                return .follow
            }
            hooks.response = { response, _ in
                guard response.status == 200, response.url.hasSuffix("/large/300000") else { return .allow }
                asked.add("response")
                await gate.passed()
                return .allow
            }
            let session = try bed.session(hooks: hooks)
            async let redirected = session.data(for: HTTPRequest(bed.redirect(to: "/echo")))
            async let large = session.data(for: HTTPRequest(bed.url + "/large/300000"))
            try await eventually("both hooks to be asked") { asked.all.count == 2 }
            // The session's thread doesn't wait for them.
            #expect(try await session.data(for: HTTPRequest(bed.url + "/meanwhile")).response.status == 200)
            #expect(try await !bed.targets().contains("/echo"))
            gate.open()
            #expect(try await Echo(redirected.body).target == "/echo")
            #expect(try await large.body.count == 300_000)
            #expect(asked.all.sorted() == ["redirect", "response"])
        }
    }

    @Test func aChallengeWaitsForItsHook() async throws {
        try await withTestBed { bed in
            let (library, gate) = (try await LibraryBed(in: bed), Gate())
            let digest = try await library.peer("digest_origin.py")
            let credentials = try Credentials(user: "user", password: Secret("password"))
            let asked = Collected<String>()
            var hooks = SessionHooks()
            hooks.challenge = { challenge in
                asked.add(challenge.url)
                await gate.passed()
                return credentials
            }
            let session = try library.session(hooks: hooks)
            let url = "https://api.localhost:\(digest.port)/right"
            async let answered = session.data(for: HTTPRequest(url))
            try await eventually("the hook to be asked") { asked.all == [url] }
            gate.open()
            #expect([200, 401].contains(try await answered.response.status) && asked.all.count == 1)
        }
    }

    @Test func aHookThatNeverReturnsEndsItsTaskAlone() async throws {
        try await withLibraryBed { bed in
            let cancelled = Collected<String>()
            @Sendable func forever(_ what: String) async {
                // Not by a cancellation handler: this may end before Swift calls it.
                while !Task.isCancelled { await Task.yield() }
                cancelled.add(what)
            }
            var hooks = SessionHooks()
            hooks.redirect = { _ in
                await forever("redirect")
                return .follow
            }
            hooks.response = { response, _ in
                if response.url.contains("/large/") || response.url.contains("/status/") { await forever("response") }
                return .allow
            }
            for idle: Duration in [.seconds(75), .milliseconds(100)] {
                let session = try bed.session(hooks: hooks) {
                    $0.responseTimeout = .milliseconds(200)
                    $0.idleTimeout = idle
                }
                for url in [bed.redirect(to: "/echo"), bed.url + "/large/300000", bed.url + "/status/204"] {
                    let error = await failure { _ = try await session.data(for: HTTPRequest(url)) }
                    #expect(error?.code == -1001, "\(url): \(String(describing: error))")
                    #expect(error?.description.contains("hook") == true, "\(url): \(String(describing: error))")
                }
            }
            try await eventually("the hooks to be cancelled") { cancelled.all.count == 6 }
            #expect(try await !bed.targets().contains("/echo"))
        }
    }

    @Test func aTaskCanBeSuspendedAndCancelledMeanwhile() async throws {
        try await withLibraryBed { bed in
            let (gate, asked) = (Gate(), Collected<String>())
            var hooks = SessionHooks()
            hooks.redirect = { redirect in
                asked.add(redirect.to)
                await gate.passed()
                return .follow
            }
            let session = try bed.session(hooks: hooks)
            let suspended = session.dataTask(for: try HTTPRequest(bed.redirect(to: "/echo/suspended")))
            let cancelled = session.dataTask(for: try HTTPRequest(bed.redirect(to: "/echo/cancelled")))
            for task in [suspended, cancelled] { task.resume() }
            try await eventually("the hook to be asked") { asked.all.count == 2 }
            suspended.suspend()
            cancelled.cancel()
            #expect(await failure { _ = try await cancelled.result() }?.code == -999)
            gate.open()
            for _ in 0..<3 { _ = try await session.data(for: HTTPRequest(bed.url + "/fence")) }
            #expect(try await !bed.targets().contains { $0.hasPrefix("/echo") })
            suspended.resume()
            #expect(try await Echo(suspended.result().body).target == "/echo/suspended")
            #expect(try await !bed.targets().contains("/echo/cancelled"))
        }
    }

    /// One stream of a connection waits for a hook, and others don't.
    @Test func aDecisionOverHTTP2TakesItsTime() async throws {
        try await withTestBed { bed in
            let (roots, gate, asked) = (try TestRoots(), Gate(), Collected<String>())
            let directives = """
                location /moved { return 302 /there; }
                location /there { return 200 "here"; }
                """
            let nginx = try await NginxOrigin(
                in: bed,
                sites: [.init(name: "api.localhost", chain: try roots.chain("api.localhost"), directives: directives)],
                http2: true)
            var configuration = SessionConfiguration()
            configuration.trust = .files([try roots.write(to: bed)])
            var hooks = SessionHooks()
            hooks.redirect = { redirect in
                asked.add(redirect.to)
                await gate.passed()
                return .follow
            }
            let session = try SessionManager(configuration: configuration, hooks: hooks)
            let url = "https://api.localhost:\(nginx.port)"
            async let moved = session.data(for: HTTPRequest(url + "/moved"))
            try await eventually("the hook to be asked") { asked.all == [url + "/there"] }
            let other = try await session.data(for: HTTPRequest(url + "/there"))
            #expect(other.response.metrics.transactions.map(\.networkProtocol) == ["h2"])
            gate.open()
            let (body, response) = try await moved
            #expect(body == Array("here".utf8) && response.metrics.transactions.count == 2)
        }
    }

    // MARK: A task's and a session's course

    @Test func theCourseIsObserved() async throws {
        try await withLibraryBed { bed in
            let seen = Collected<String>()
            var hooks = SessionHooks()
            hooks.resumed = { seen.add("resumed \($0.id)") }
            hooks.suspended = { seen.add("suspended \($0.id)") }
            hooks.completed = { task, _, error in seen.add("completed \(task.id) \(error?.code ?? 0)") }
            hooks.invalidated = { seen.add("invalidated") }
            let session = try bed.session(hooks: hooks)
            let task = session.dataTask(for: try HTTPRequest(bed.url + "/hold/observed"))
            task.resume()
            task.resume()
            _ = try await bed.origin.events.first("held") { $0["name"] == "observed" }
            task.suspend()
            task.suspend()
            task.resume()
            _ = try await bed.session().data(for: HTTPRequest(bed.url + "/release/observed"))
            _ = try await task.result()
            session.dataTask(for: try HTTPRequest(bed.url + "/never")).cancel()
            session.invalidate()
            session.invalidate()
            try await eventually("the session to end") { seen.all.contains("invalidated") }
            #expect(seen.all == ["resumed 1", "suspended 1", "resumed 1", "completed 1 0", "invalidated"])
        }
    }

    @Test func aSessionIsResetAfterItsEnd() async throws {
        try await withLibraryBed { bed in
            let ended = Collected<Void>()
            var hooks = SessionHooks()
            hooks.invalidated = { ended.add(()) }
            let session = try bed.session(hooks: hooks)
            let held = session.dataTask(for: try HTTPRequest(bed.url + "/hold/reset"))
            held.resume()
            _ = try await bed.origin.events.first("held") { $0["name"] == "reset" }
            let early = session.dataTask(for: try HTTPRequest(bed.url + "/never"))
            try session.reset()
            #expect(await failure { _ = try await held.result() }?.description == SessionError.invalidated.description)
            #expect(try await session.data(for: HTTPRequest(bed.url + "/echo")).response.status == 200)
            // Those that were made before end with the session that made them.
            guard case .invalidated? = await failure({ _ = try await early.result() }) else { return note("not ended") }
            session.finishTasksAndInvalidate()
            try await eventually("both to end") { ended.all.count == 2 }
            guard
                case .invalidated? = await failure({ _ = try await session.data(for: HTTPRequest(bed.url + "/never")) })
            else { return note("a task began after the end") }
            try session.reset()
            let again = session.dataTask(for: try HTTPRequest(bed.url + "/echo"))
            #expect(try await again.result().response.status == 200 && again.id > early.id)
            #expect(try await !bed.targets().contains("/never"))
        }
    }
}
