import Foundation
import Testing

/// Near the limit of its control group the proxy sheds load, before the kernel kills it.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: LimitedGroup.isAvailable(.memory), "needs root, and control groups for memory"))
struct MemoryLackTests {
    private func withLimit(_ body: (SharedBed, LimitedGroup) async throws -> Void) async throws {
        let limit = try LimitedGroup(.memory)
        defer { limit.remove() }
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed, sections: ["admin": ["listen: 127.0.0.1:0"]], launcher: limit.launcher)
            try await body(shared, limit)
        }
    }

    private func metrics(_ shared: SharedBed) async throws -> String {
        let admin = try #require(try await shared.proxy.events.first("proxy.ready")["admin"])
        return try await shared.bed.run(["curl", "-sS", "http://\(admin)/metrics"]).output
    }

    @Test func idleClientsMakeRoomAndNewOnesWait() async throws {
        try await withLimit { shared, limit in
            let idle = try (1...40).map { _ in try RawConnection(to: shared.proxy) }
            try await eventually("all to be accepted") { try await metrics(shared).contains("\npinproxy_clients 40\n") }
            try limit.set(taken: 880)
            let said = try await shared.proxy.events.first("memory.limit")
            #expect(said["level"] == "warning" && said["limit"] != nil, "\(said)")
            // After a second idle they are closed, and new clients are served.
            try await eventually("one to be closed") { try await !metrics(shared).contains("\npinproxy_clients 40\n") }
            withExtendedLifetime(idle) {}
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)

            try limit.set(taken: 300)
            let over = try await shared.proxy.events.first("memory.limit") { $0["effect"] == "over" }
            // The released memory may be enough: then the shortage ends before the limit is lifted.
            #expect((over["closed"].flatMap { Int($0) } ?? 0) > 0, "\(over)")
            try await eventually("memory") { try await metrics(shared).contains("\npinproxy_memory_pressure 0\n") }
            let again = try (1...40).map { _ in try RawConnection(to: shared.proxy) }
            try await eventually("all to be accepted") { try await metrics(shared).contains("\npinproxy_clients 40\n") }
            withExtendedLifetime(again) {}
        }
    }

    @Test func requestsAreRefusedBeforeTheMemoryIsSpent() async throws {
        try await withLimit { shared, limit in
            #expect(try await shared.curl(shared.url + "/echo").succeeded)
            // A lower limit has the kernel take back some of what is used.
            try await eventually("the pressure") {
                try limit.set(taken: 970)
                return try await metrics(shared).contains("\npinproxy_memory_pressure 2\n")
            }
            for arguments in [[shared.plainURL + "/echo"], ["-p", shared.plainURL + "/echo"]] {
                let run = try await shared.bed.curl(via: shared.proxy, ["-i"] + arguments)
                #expect((run.output + run.errors).contains("503"), "\(run)")
                if arguments.count == 1 { #expect(run.output.contains("Retry-After: 5"), "\(run)") }
            }
            try limit.set(taken: 300)
            try await eventually("its end") { try await metrics(shared).contains("\npinproxy_memory_pressure 0\n") }
            #expect(try await shared.curl(shared.plainURL + "/echo").output.contains("/echo"))
        }
    }
}
