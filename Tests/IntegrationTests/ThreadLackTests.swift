import Foundation
import Testing

/// If no thread can be created, requests that need one are refused, and no others wait.
@Suite(
    .timeLimit(.minutes(5)), .enabled(if: LimitedGroup.isAvailable(.pids), "needs root, and control groups for threads")
)
struct ThreadLackTests {
    @Test func whatNeedsAThreadIsRefused() async throws {
        let group = try LimitedGroup(.pids)
        defer { group.remove() }
        try await withTestBed { bed in
            let shared = try await RuleBed.prepare(
                bed, rules: ["{path: /answer/json/**, response: {serializer: json}}"],
                sections: ["proxy": ["workers: 1"]], launcher: group.launcher)
            let judged = "\(shared.url)\(RuleBed.answer("json", RuleBed.response("{}")))"
            try group.stopThreads()
            let refused = try await shared.curl("-i", judged)
            #expect(refused.output.hasPrefix("HTTP/1.1 503 ") && refused.output.contains("Retry-After"), "\(refused)")
            #expect(refused.output.contains("pthread_create"), "\(refused)")
            let began = try await shared.proxy.events.first("decoder.unavailable")
            #expect(began["cause"]?.contains("pthread_create") == true, "\(began)")
            // On the same worker.
            #expect(try await shared.curl("\(shared.url)/large/5").output.count == 5)
            try group.allowThreads()
            let served = try await shared.curl("-i", judged)
            #expect(served.output.hasPrefix("HTTP/1.1 200 "), "\(served)")
            _ = try await shared.proxy.events.first("decoder.unavailable") { $0["effect"] == "over" }
            #expect(shared.proxy.events.all("decoder.unavailable").count == 2)
        }
    }
}
