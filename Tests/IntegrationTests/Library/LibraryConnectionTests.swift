import Foundation
import PinnedSession
import Testing

/// How many requests to a server are in flight at one time (`maximumConnectionsPerHost`).
@Suite(.timeLimit(.minutes(5)))
struct LibraryConnectionTests {
    private func hold(_ name: String, at url: String, of session: SessionManager) throws -> SessionTask {
        let task = session.dataTask(for: try HTTPRequest(url + "/hold/\(name)"))
        task.resume()
        return task
    }

    /// The names of the held requests, in the order of their arrival.
    private func held(by origin: PythonPeer) -> [String] { origin.events.all("held").compactMap { $0["name"] } }

    @Test func othersWaitForTheirTurn() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.maximumConnectionsPerHost = 2 }
            let others = try bed.session()
            func release(_ name: String) async throws {
                _ = try await others.data(for: HTTPRequest(bed.url + "/release/\(name)"))
            }
            let tasks = try ["a", "b", "c", "d", "e", "f"].map { try hold($0, at: bed.url, of: session) }
            for name in ["a", "b"] { _ = try await bed.origin.events.first("held") { $0["name"] == name } }
            // Another host has a separate limit.
            let other = try hold("other", at: bed.otherURL, of: session)
            _ = try await bed.origin.events.first("held") { $0["name"] == "other" }
            // A task that is cancelled leaves its turn to the next one.
            tasks[2].cancel()
            guard case .cancelled? = await failure({ _ = try await tasks[2].result() }) else {
                return note("not cancelled")
            }
            #expect(Set(held(by: bed.origin)) == ["a", "b", "other"])
            for (ended, next) in [("a", "d"), ("d", "e"), ("e", "f")] {
                try await release(ended)
                _ = try await bed.origin.events.first("held") { $0["name"] == next }
            }
            for name in ["b", "f", "other"] { try await release(name) }
            for task in tasks where task.id != tasks[2].id {
                #expect(try await task.result().body == Array("first,second".utf8))
            }
            _ = try await other.result()
            #expect(!held(by: bed.origin).contains("c"))
            var made = 0
            for task in tasks where task.id != tasks[2].id {
                made += try await task.result().response.metrics.transactions.count { !$0.isReused }
            }
            #expect(made == 2)
        }
    }

    @Test func manyRequestsTakeTheAllowedConnections() async throws {
        try await withLibraryBed { bed in
            let session = try bed.session { $0.maximumConnectionsPerHost = 0 }
            let made = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let (_, response) = try await session.data(for: HTTPRequest(bed.url + "/echo/\(number)"))
                        return response.metrics.transactions.count { !$0.isReused }
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(made == 1)
        }
    }

    /// A failed request gives its turn back, and so does one that is redirected by a hook.
    @Test func failuresGiveTheirTurnsBack() async throws {
        try await withLibraryBed { bed in
            var hooks = SessionHooks()
            hooks.redirect = { redirect in (try? HTTPRequest(redirect.to)).map { .replace($0) } ?? .pass }
            let session = try bed.session(hooks: hooks) { $0.maximumConnectionsPerHost = 1 }
            for _ in 0..<3 {
                _ = await failure { _ = try await session.data(for: HTTPRequest(bed.url + "/truncated/length")) }
                _ = await failure { _ = try await session.data(for: HTTPRequest("https://api.localhost:1/")) }
            }
            let moved = bed.redirect(to: bed.url + "/echo/there")
            async let first = session.data(for: HTTPRequest(moved))
            async let second = session.data(for: HTTPRequest(moved))
            #expect(try await first.response.status == 200)
            #expect(try await second.response.status == 200)
        }
    }

    /// They share connections, as soon as the server has chosen HTTP/2.
    @Test func overHTTP2NobodyWaits() async throws {
        try await withLibraryBed { bed in
            let origin = try await PythonPeer.http2Origin(in: bed.bed, chain: ServedChain(bed.leaf))
            let url = "https://api.localhost:\(origin.port)"
            let session = try bed.session { $0.maximumConnectionsPerHost = 1 }
            let tasks = try (0..<20).map { try hold("h\($0)", at: url, of: session) }
            try await eventually("all to be held") { Set(held(by: origin)).count == 20 }
            for number in 0..<20 { _ = try await session.data(for: HTTPRequest(url + "/release/h\(number)")) }
            for task in tasks { #expect(try await task.result().response.status == 200) }
            #expect(Set(origin.events.all("held").compactMap { $0["connection"] }).count < 5)
        }
    }
}
