import Foundation
import PinproxyTestAuthority
import Testing

/// `session.timeout`: a rule's limit on how long nothing moves in either direction.
@Suite(.timeLimit(.minutes(5)))
struct RuleTimeoutTests {
    /// An idle tunnel ends after its rule's timeout. The daemon's own is longer than the test.
    @Test func aTunnelEndsAfterItsOwnTime() async throws {
        try await withTestBed { bed in
            let shared = try await RuleBed.prepare(
                bed, rules: [], extra: ["action: tunnel", "session: {timeout: 300ms}"],
                sections: ["timeouts": ["idle_client: 5m", "first_byte: 5m"]])
            let run = try await shared.curl(
                "--cacert", bed.path("roots.pem"), "--max-time", "120", shared.url + "/silent")
            #expect(!run.succeeded && !run.errors.contains("timed out"), "\(run)")
            _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("(session.timeout)") == true }
        }
    }

    @Test func anUpgradedConnectionEndsAfterItsOwnTime() async throws {
        try await withTestBed { bed in
            let shared = try await RuleBed.prepare(
                bed, rules: ["{path: /upgrade, session: {timeout: 300ms}}"],
                sections: ["timeouts": ["idle_client: 5m", "first_byte: 5m"]])
            let run = try await shared.curl(
                "-i", "--max-time", "120", "--http1.1", "-H", "Connection: Upgrade", "-H", "Upgrade: echo",
                shared.url + "/upgrade")
            #expect(!run.errors.contains("timed out"), "\(run)")
            _ = try await shared.proxy.events.first("exchange") { $0["cause"]?.contains("(session.timeout)") == true }
        }
    }

    /// An origin that doesn't answer, and one that stops in the middle of its answer.
    @Test func anExchangeEndsAfterItsOwnTime() async throws {
        try await withTestBed { bed in
            let shared = try await RuleBed.prepare(
                bed, rules: [], extra: ["session: {timeout: 300ms}"],
                sections: ["timeouts": ["idle_client: 5m", "first_byte: 5m"]])
            let silent = try await shared.curl("-i", "--max-time", "120", shared.url + "/silent")
            #expect(silent.output.hasPrefix("HTTP/1.1 504 "), "\(silent)")
            let held = try await shared.curl("-i", "--max-time", "120", shared.url + "/hold/x")
            #expect(held.output.hasSuffix("first,") && !held.succeeded && !held.errors.contains("timed out"), "\(held)")
        }
    }

    /// A rule may also give more time than the daemon does.
    @Test func anExchangeMayTakeLonger() async throws {
        try await withTestBed { bed in
            let shared = try await RuleBed.prepare(
                bed, rules: ["{path: /hold/*, session: {timeout: 5m}}"],
                sections: ["timeouts": ["idle_client: 300ms", "first_byte: 300ms"]])
            async let held = shared.curl("--max-time", "120", shared.url + "/hold/x")
            // The daemon's own timeout has meanwhile expired for another request.
            let silent = try await shared.curl("-i", "--max-time", "120", shared.url + "/silent")
            #expect(silent.output.hasPrefix("HTTP/1.1 504 "), "\(silent)")
            _ = try await shared.curl(shared.url + "/release/x")
            #expect(try await held.output == "first,second")
        }
    }
}
