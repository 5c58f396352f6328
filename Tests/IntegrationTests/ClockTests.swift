import Foundation
import PinproxyTestAuthority
import Testing

/// libfaketime, which replaces the calls for the time of day and leaves the monotonic clock alone.
private enum FakeTime {
    static let library = ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
        .first { FileManager.default.fileExists(atPath: $0) }
}

/// A clock that jumps, as after a suspension or the first answer of a time server. Certificates follow it; deadlines
/// don't.
@Suite(
    .enabled(if: !Sanitizer.isOn, "the sanitizer wants to be loaded before libfaketime"),
    .enabled(if: FakeTime.library != nil, "needs libfaketime (package faketime)"), .timeLimit(.minutes(5)))
struct ClockTests {
    private struct Machine {
        let bed: TestBed
        let origin: PythonPeer
        let proxy: ProxyProcess

        /// - Parameter pins: the text of the pin file, given the origin's pin.
        init(
            _ bed: TestBed, sections: ProxyProcess.Sections = [:], pins: (String) -> String = { _ in "hosts: []\n" }
        ) async throws {
            self.bed = bed
            try bed.file("clock", "+0d")
            let roots = try TestRoots()
            let leaf = try roots.leaf("origin.test") { template in
                template.notBefore -= 100 * 86400
                template.notAfter += 100 * 86400
            }
            origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            proxy = try await ProxyProcess(
                in: bed, pins: pins(try await leaf.pin(bed)), trust: roots.write(to: bed),
                hosts: ["origin.test": "127.0.0.1"], sections: sections,
                // The second `env` loads libfaketime first, which then sets a variable. If the proxy were first, that
                // would move the environment, and a Swift program would not find its arguments.
                launcher: ["/usr/bin/env"] + Self.variables(bed) + ["/usr/bin/env"])
        }

        private static func variables(_ bed: TestBed) -> [String] {
            [
                "LD_PRELOAD=\(FakeTime.library ?? "")", "FAKETIME_TIMESTAMP_FILE=\(bed.path("clock"))",
                "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
            ]
        }

        /// Sets the clock that the proxy and its clients read.
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

    /// The client gets a valid certificate after a leaf's expiry and before its issue. Its clock is the proxy's.
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

    /// The origin's certificate is verified for the current day: a year on, it has expired.
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

    /// A transfer in flight is not cut by a sudden jump of a day. A deadline still fires if the clock returns.
    @Test(arguments: ["+1d", "-1d"])
    func deadlinesDoNot(_ offset: String) async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed, sections: ["timeouts": ["idle_client: 20s", "first_byte: 500ms"]])
            let bed = machine.bed
            async let transfer = machine.curl("/hold/clock")
            _ = try await machine.origin.events.first("held")
            try machine.set(offset)
            // By then every timer on the wall clock would have fired.
            let late = try await machine.curl("/silent")
            #expect(late.output == "504", "\(late)")
            _ = try await bed.run(["curl", "-ksS", "https://127.0.0.1:\(machine.origin.port)/release/clock"])
            let run = try await transfer
            #expect(run.output == "200" && run.succeeded, "\(run)")
        }
    }

    private static func pins(_ pin: String, _ keys: String) -> String {
        """
        hosts:
          - match: origin.test
            pinning: public-key
            pins: [\(pin)]
            enforcement: report
            \(keys)

        """
    }

    /// On the date a wrong pin is refused on connections admitted before, on idle ones, and on those that would resume
    /// their sessions.
    @Test(arguments: ["/echo", "/until-close/10"])
    func aDateThatPassesEnforces(_ path: String) async throws {
        let date = Date(timeIntervalSinceNow: 10 * 86_400).formatted(.iso8601.year().month().day())
        try await withTestBed { bed in
            let machine = try await Machine(bed) { _ in Self.pins(.wrongPin, "enforce_from: \(date)") }
            for _ in 1...2 { #expect(try await machine.curl(path).output == "200") }
            try machine.set("+20d")
            let run = try await machine.curl(path)
            #expect(run.errors.contains("502"), "\(run)")
            _ = try await machine.proxy.events.first("pin.mismatch")
            try machine.set("+0d")
            #expect(try await machine.curl(path).output == "200")
        }
    }

    /// A WebSocket's data isn't inspected until a reload.
    @Test func aReloadAfterTheDateEndsWhatWasReported() async throws {
        let date = Date(timeIntervalSinceNow: 10 * 86_400).formatted(.iso8601.year().month().day())
        try await withTestBed { bed in
            let machine = try await Machine(bed) { _ in Self.pins(.wrongPin, "enforce_from: \(date)") }
            let client = try await HeldClient(
                in: SharedBed(bed: bed, proxy: machine.proxy, originPort: machine.origin.port, origin: machine.origin))
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.upgrade() == "101")
            try await machine.proxy.reload()
            #expect(try await client.echo("before") == "before")
            try machine.set("+20d")
            try await machine.proxy.reload()
            #expect(try await client.echo("after") == "closed")
        }
    }

    /// A clock that is set forward is no evidence for the days between.
    @Test func aJumpIsNoEvidence() async throws {
        try await withTestBed { bed in
            let machine = try await Machine(bed) { Self.pins($0, "enforce_after: {matches: 2, days: 2}") }
            #expect(try await machine.curl("/until-close/10").output == "200")
            for offset in ["+60d", "+0d"] {
                try machine.set(offset)
                #expect(try await machine.curl("/until-close/10").output == "200")
            }
            try await machine.proxy.reload()
            #expect(machine.proxy.events.all("pin.enforced").isEmpty)
            let status = try await bed.run(
                [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(status.output.contains("2 of 2 matches, 1 of 2 days"), "\(status)")
            // A day of the right clock is.
            for hours in [12, 25] {
                try machine.set("+\(hours)h")
                #expect(try await machine.curl("/until-close/10").output == "200")
            }
            let event = try await machine.proxy.events.first("pin.enforced")
            #expect(event["matches"] == "5" && event["days"] == "2")
        }
    }
}
