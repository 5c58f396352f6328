import Foundation
import TestAuthority
import Testing

/// libfaketime, which takes the place of the calls that ask for the time of day and leaves the monotonic clock alone.
private enum FakeTime {
    static let library = ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
        .first { FileManager.default.fileExists(atPath: $0) }
}

/// A clock that jumps, as after a suspension or the first word of a time server: certificates follow it, deadlines
/// don't.
@Suite(
    .enabled(if: !Sanitizer.isOn, "the sanitizer wants to be loaded before libfaketime"),
    .enabled(if: FakeTime.library != nil, "needs libfaketime (package faketime)"), .timeLimit(.minutes(5)))
struct ClockTests {
    private struct Machine {
        let bed: TestBed
        let origin: PythonPeer
        let proxy: ProxyProcess

        init(_ bed: TestBed, sections: ProxyProcess.Sections = [:]) async throws {
            self.bed = bed
            try bed.file("clock", "+0d")
            let roots = try TestRoots()
            let leaf = try roots.leaf("origin.test") { template in
                template.notBefore -= 100 * 86400
                template.notAfter += 100 * 86400
            }
            origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["origin.test": "127.0.0.1"], sections: sections,
                // The library sets a variable of its own in the first program that has it, and a program of Swift in
                // which the environment moves before its start finds no arguments.
                launcher: ["/usr/bin/env"] + Self.variables(bed) + ["/usr/bin/env"])
        }

        private static func variables(_ bed: TestBed) -> [String] {
            [
                "LD_PRELOAD=\(FakeTime.library ?? "")", "FAKETIME_TIMESTAMP_FILE=\(bed.path("clock"))",
                "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
            ]
        }

        /// For whoever looks at this clock from now on.
        func set(_ offset: String) throws { try bed.file("clock", offset) }

        var url: String { "https://origin.test:\(origin.port)" }

        func curl(_ path: String = "/echo") async throws -> Run {
            try await bed.run(
                ["/usr/bin/env"] + Self.variables(bed) + [
                    "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", url + path,
                ],
                environment: proxy.clientEnvironment)
        }
    }

    /// Beyond a leaf's life, and before it was issued: the client, whose clock is the same, gets one that is good.
    @Test(arguments: ["+40d", "-12h", "+20d"])
    func certificatesFollowTheClock(_ offset: String) async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            #expect(try await machine.curl().output == "200")
            try machine.set(offset)
            let run = try await machine.curl()
            #expect(run.output == "200", "\(run)")
            try machine.set("+0d")
            let again = try await machine.curl()
            #expect(again.output == "200", "\(again)")
        }
    }

    /// The origin's certificate is judged by the day that it is: a year on, it has expired.
    @Test func whatHasExpiredByTheNewTimeIsRefused() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed)
            #expect(try await machine.curl().output == "200")
            try machine.set("+365d")
            let run = try await machine.curl()
            #expect(run.errors.contains("502"), "\(run)")
            let failure = try await machine.proxy.events.first("trust.failure")
            #expect(failure["details"]?.contains("expired") == true, "\(failure)")
        }
    }

    /// A transfer under way is not cut by a day that passes in a moment; a deadline strikes in spite of one that
    /// returns.
    @Test(arguments: ["+1d", "-1d"])
    func deadlinesDoNot(_ offset: String) async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed, sections: ["timeouts": ["idle_client: 20s", "first_byte: 500ms"]])
            let bed = machine.bed
            async let transfer = machine.curl("/hold/clock")
            _ = try await machine.origin.events.first("held")
            try machine.set(offset)
            // By then every timer that goes by the time of day would have struck.
            let late = try await machine.curl("/silent")
            #expect(late.output == "504", "\(late)")
            _ = try await bed.run(["curl", "-ksS", "https://127.0.0.1:\(machine.origin.port)/release/clock"])
            let run = try await transfer
            #expect(run.output == "200" && run.succeeded, "\(run)")
        }
    }
}
