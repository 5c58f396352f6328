import Foundation
import Logging
import MetricsTestKit
import PinnedSession
import PinnedSessionLogging
import PinnedSessionMetrics
import PinnedSessionService
import PinproxySecurity
import PinproxySerialization
import ServiceLifecycle
import Testing

/// A session among the services of a server: its shutdown, its log and its metrics.
@Suite(.timeLimit(.minutes(5)))
struct LibraryServicesTests {
    /// A group with a session, and a request that the origin holds until it is released by its name.
    private func withHeldRequest(
        _ bed: LibraryBed, gracePeriod: Duration,
        _ body: (SessionManager, ServiceGroup, _ held: Task<SessionError?, Never>) async throws -> Void
    ) async throws {
        let session = try bed.session()
        let service = SessionService(session, gracePeriod: gracePeriod)
        let group = ServiceGroup(services: [service], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let running = Task { try await group.run() }
        // The end of the connection is the end of its body.
        let answer = encoded("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nheld")
        let url = bed.url + "/held-answer/it/close/" + answer
        let held = Task { await failure { _ = try await session.data(for: HTTPRequest(url)) } }
        _ = try await bed.origin.events.first("held") { $0["name"] == "it" }
        try await body(session, group, held)
        // The group ends with the last request.
        let outcome = await running.result
        if case .failure(let error) = outcome, !(error is CancellationError) { throw error }
    }

    @Test func aGracefulShutdownLetsRequestsFinish() async throws {
        try await withLibraryBed { bed in
            try await withHeldRequest(bed, gracePeriod: .seconds(120)) { session, group, held in
                await group.triggerGracefulShutdown()
                // The shutdown has reached the session when it refuses new tasks.
                try await eventually("new tasks to be refused") {
                    let refused = await failure {
                        _ = try await session.data(for: HTTPRequest(bed.url + "/echo"))
                    }
                    if case .invalidated? = refused { return true }
                    return false
                }
                _ = try await bed.session().data(for: HTTPRequest(bed.url + "/release/it"))
                #expect(await held.value == nil)
            }
        }
    }

    @Test func theGracePeriodIsTheLongestThatAShutdownTakes() async throws {
        try await withLibraryBed { bed in
            try await withHeldRequest(bed, gracePeriod: .milliseconds(1)) { _, group, held in
                await group.triggerGracefulShutdown()
                let outcome = await held.value
                guard case .invalidated? = outcome else { return note("not ended: \(String(describing: outcome))") }
            }
        }
    }

    @Test func aCancelledGroupCancelsItsRequests() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session()
            let running = Task { try await SessionService(session).run() }
            let held = Task {
                await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/held-gone/it")) }
            }
            _ = try await bed.origin.events.first("held") { $0["name"] == "it" }
            running.cancel()
            guard case .invalidated? = await held.value else { return note("not ended") }
            await #expect(throws: CancellationError.self) { try await running.value }
            // An ended session is finished at once.
            await session.finish()
        }
    }

    @Test func finishingWaitsForTheLastTaskAndIsCancelledWithItsWaiter() async throws {
        try await withLibraryBed { bed in
            await (try bed.session()).finish()
            let session = try bed.session()
            let held = Task {
                await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/held-gone/it")) }
            }
            _ = try await bed.origin.events.first("held") { $0["name"] == "it" }
            let first = Task { await session.finish() }
            let second = Task { await session.finish() }
            first.cancel()
            guard case .invalidated? = await held.value else { return note("not ended") }
            await first.value
            await second.value
        }
    }

    @Test func startingReadsTheConfigurationAway() async throws {
        try await withLibraryBed { bed in
            var configuration = SessionConfiguration()
            configuration.trust = .files([bed.trust])
            let session = try await SessionManager.start(configuration: configuration)
            #expect(try await session.data(for: HTTPRequest(bed.url + "/echo")).response.status == 200)
            configuration.trust = .files(["/nowhere.pem"])
            let wrong = configuration
            let refused = await failure { _ = try await SessionManager.start(configuration: wrong) }
            guard case .configuration(let text)? = refused else { return note("not refused") }
            #expect(text.contains("/nowhere.pem"), "\(text)")
        }
    }

    @Test func metricsCountWhatTheServerWasAsked() async throws {
        try await withLibraryBed { bed in
            let counts = TestMetrics()
            let session = try bed.session(hooks: SessionHooks().metrics(to: counts))
            let missing = "/answer/x/" + encoded("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
            _ = try await session.data(for: HTTPRequest(bed.url + "/echo"))
            _ = try await session.data(for: HTTPRequest(bed.url + "/echo", method: "POST", body: .text("hello")))
            _ = try await session.data(for: HTTPRequest(bed.url + missing))
            _ = try await session.data(for: HTTPRequest(bed.url + "/echo", method: "ODD"))
            let moved = bed.redirect(to: "/echo")
            _ = try await session.data(for: HTTPRequest(moved))
            _ = await failure { _ = try await session.data(for: HTTPRequest("http://127.0.0.1:1/")) }
            await session.finish()
            let asked = try await bed.targets()
            #expect(asked.count == 6)

            func requests(_ method: String, _ outcome: (String, String)...) -> Int64 {
                let dimensions = [("http.request.method", method)] + outcome
                #expect(counts.timers(label: "http.client.request.duration", dimensions: dimensions).count == 1)
                return counts.counterTotal(label: "http.client.requests", dimensions: dimensions)
            }
            #expect(requests("GET", ("http.response.status_code", "200")) == 2)
            #expect(requests("POST", ("http.response.status_code", "200")) == 1)
            #expect(requests("GET", ("http.response.status_code", "404")) == 1)
            #expect(requests("_OTHER", ("http.response.status_code", "200")) == 1)
            #expect(requests("GET", ("error.type", "connection")) == 1)
            #expect(counts.counterTotal(label: "http.client.requests") == 6)
            #expect(counts.counterTotal(label: "http.client.redirects") == 1)
            #expect(counts.counterTotal(label: "http.client.request.bytes") > 200)
            #expect(counts.counterTotal(label: "http.client.response.bytes") > 200)
            #expect(counts.counterTotal(label: "http.client.connections") > 0)
        }
    }

    @Test func linesOfTheLogHaveNoSecrets() async throws {
        try await withLibraryBed { bed in
            let lines = Collected<String>()
            let logger = Logger(label: "test") { _ in CollectingHandler(lines: lines) }
            let wrong = HostRule(
                try HostPattern("other.localhost"),
                policy: SecurityPolicy(
                    mode: .publicKey, pins: PinSet([try Pin(text: .wrongPin, for: .publicKey)])))
            let right = HostRule(
                try HostPattern("api.localhost"),
                credentials: try Credentials(user: "somebody", password: Secret("s3cret-1")))
            // The program's own hooks are still called.
            let (heads, ends) = (Collected<Int>(), Collected<UInt64>())
            var own = SessionHooks()
            own.response = { response, _ in
                heads.add(response.status)
                return .allow
            }
            own.completed = { task, _, _ in ends.add(task.id) }
            let session = try bed.session(hosts: [wrong, right], hooks: own.logging(to: logger))
            var request = try HTTPRequest(bed.url + "/echo?token=s3cret-2", method: "POST", body: .text("s3cret-3"))
            try request.set("Authorization", "Bearer s3cret-4", isSecret: true)
            _ = try await session.data(for: request)
            _ = await failure { _ = try await session.data(for: HTTPRequest(bed.otherURL + "/x?key=s3cret-5")) }
            let user = bed.url.replacing("https://", with: "https://u:s3cret-6@")
            _ = await failure { _ = try await session.data(for: HTTPRequest(user + "/y?key=s3cret-7")) }
            await session.finish()
            let all = lines.all
            #expect(all.count == 3 && !all.contains { $0.contains("s3cret") }, "\(all)")
            #expect(heads.all == [200] && ends.all == [1, 2, 3])
            try #require(all.count == 3)
            #expect(all[0].hasPrefix("debug: request completed ") && all[0].contains("status=200"), "\(all)")
            #expect(all[0].contains("request=POST \(bed.url)/echo?***"), "\(all)")
            #expect(all[1].hasPrefix("error: request failed ") && all[1].contains("error.type=pin_mismatch"), "\(all)")
            #expect(all[2].hasPrefix("notice: request failed ") && all[2].contains("invalid_request"), "\(all)")
        }
    }
}

/// Keeps each line: `level: message key=value …`.
private struct CollectingHandler: LogHandler {
    let lines: Collected<String>
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(lines: Collected<String>) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: Logging.LogEvent) {
        let pairs = (event.metadata ?? [:]).map { "\($0)=\($1)" }.sorted().joined(separator: " ")
        lines.add("\(event.level): \(event.message) \(pairs)")
    }
}
