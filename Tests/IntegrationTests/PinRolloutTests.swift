import Foundation
import PinproxyConfiguration
import PinproxyTestAuthority
import Testing

/// Entries that become enforced after enough evidence, and on some machines first.
@Suite(.timeLimit(.minutes(5)))
struct PinRolloutTests {
    /// An origin that presents the pinned key, and one of the same name with another.
    private struct Origins {
        let bed: TestBed
        let right: PythonPeer
        let wrong: PythonPeer
        let pin: String
        let trust: String

        init(_ bed: TestBed) async throws {
            self.bed = bed
            let roots = try TestRoots()
            let leaf = try roots.leaf(OriginBed.name)
            right = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            wrong = try await PythonPeer.origin(in: bed, chain: ServedChain(roots.leaf(OriginBed.name)))
            pin = try await leaf.pin(bed)
            trust = try roots.write(to: bed)
        }

        private static let afterThree = "enforcement: report\n    enforce_after: {matches: 3, days: 0}"

        func pins(_ pins: [String]? = nil, _ keys: String = afterThree) -> String {
            """
            hosts:
              - match: origin.test
                pinning: public-key
                pins: [\((pins ?? [pin, .wrongPin]).joined(separator: ", "))]
                \(keys)

            """
        }

        func proxy(_ text: String) async throws -> ProxyProcess {
            try await ProxyProcess(in: bed, pins: text, trust: trust, hosts: [OriginBed.name: "127.0.0.1"])
        }

        /// The status of a request over a new connection.
        func ask(_ origin: PythonPeer, via proxy: ProxyProcess) async throws -> String {
            let run = try await bed.curl(
                via: proxy,
                [
                    "-o", "/dev/null", "-w", "%{http_connect} %{http_code}",
                    "https://origin.test:\(origin.port)/until-close/10",
                ])
            return run.output
        }

        func command(_ arguments: String...) async throws -> String {
            try await bed.run(
                [ProxyProcess.executable, arguments[0], "--config", bed.path("proxy/pinproxy.yaml")]
                    + arguments.dropFirst(),
                environment: ProxyProcess.environment(in: bed)
            ).output
        }
    }

    private static let otherPin = "sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="
    private static let passed = "200 200"
    private static let refused = "502 000"
    private static let file = "proxy/state/pinproxy/enforced.json"

    @Test func isEnforcedOnceEnoughConnectionsMatchedInARow() async throws {
        try await withTestBed { bed in
            let origins = try await Origins(bed)
            var proxy = try await origins.proxy(origins.pins())
            let (right, wrong) = (origins.right, origins.wrong)
            for _ in 1...2 { #expect(try await origins.ask(right, via: proxy) == Self.passed) }
            // A mismatch resets the count.
            #expect(try await origins.ask(wrong, via: proxy) == Self.passed)
            for _ in 1...2 { #expect(try await origins.ask(right, via: proxy) == Self.passed) }
            try await proxy.reload()
            #expect(proxy.events.all("pin.enforced").isEmpty)
            #expect(try await origins.command("status").contains("  reported until 3 matches without a mismatch"))
            let explained = try await origins.command("explain", "origin.test:\(right.port)")
            #expect(explained.contains("(enforce_after): 2 of 3 matches"), "\(explained)")

            #expect(try await origins.ask(right, via: proxy) == Self.passed)
            let event = try await proxy.events.first("pin.enforced")
            #expect(event["entry"] == "origin.test")
            #expect(event["location"] == bed.path("proxy/pins.yaml") + ":2")
            #expect(event["matches"] == "3" && event["days"] == "0")
            #expect(try await origins.ask(wrong, via: proxy) == Self.refused)
            _ = try await proxy.events.first("pin.mismatch")
            #expect(try await origins.ask(right, via: proxy) == Self.passed)
            #expect(try await origins.command("status").contains("  enforced since "))
            #expect(try await !origins.command("status").contains("insecure:"))
            #expect(try await origins.command("explain", "origin.test:\(right.port)").contains("enforced since "))

            // Enforcement survives a restart, a reload, and a new pin.
            await proxy.process.stop()
            proxy = try await origins.proxy(origins.pins())
            #expect(try await origins.ask(wrong, via: proxy) == Self.refused)
            try bed.file("proxy/pins.yaml", origins.pins([origins.pin, .wrongPin, Self.otherPin]))
            try await proxy.reload()
            #expect(try await origins.ask(wrong, via: proxy) == Self.refused)
            #expect(proxy.events.all("pin.enforced").isEmpty)

            // Removing a pin resets the count: earlier matches may have been its own.
            try bed.file("proxy/pins.yaml", origins.pins([origins.pin]))
            try await proxy.reload()
            #expect(try await origins.ask(wrong, via: proxy) == Self.passed)
            for _ in 1...2 { #expect(try await origins.ask(right, via: proxy) == Self.passed) }
            try await proxy.reload()
            #expect(proxy.events.all("pin.enforced").isEmpty)
            #expect(try !bed.contents(Self.file).contains("origin.test"))
            #expect(try await origins.ask(right, via: proxy) == Self.passed)
            _ = try await proxy.events.first("pin.enforced")
            #expect(try await origins.ask(wrong, via: proxy) == Self.refused)
        }
    }

    /// A client was admitted before the entry became enforced.
    @Test func whatWasLetThroughBeforeIsNotUsedAgain() async throws {
        try await withTestBed { bed in
            let origins = try await Origins(bed)
            let proxy = try await origins.proxy(origins.pins())
            let shared = SharedBed(bed: bed, proxy: proxy, originPort: origins.wrong.port, origin: origins.wrong)
            let client = try await HeldClient(in: shared)
            #expect(try await client.connect() == "200")
            #expect(try await client.secure() == "new")
            #expect(try await client.get() == "200")
            for _ in 1...3 { #expect(try await origins.ask(origins.right, via: proxy) == Self.passed) }
            _ = try await proxy.events.first("pin.enforced")
            #expect(try await client.get("/refused") == "502")
            #expect(origins.wrong.events.all("request").allSatisfy { $0["target"] != "/refused" })
        }
    }

    @Test func aBrokenFileIsMovedAsideAndCountingDecides() async throws {
        try await withTestBed { bed in
            let origins = try await Origins(bed)
            try bed.file(Self.file, "{\"entries\": 7")
            let proxy = try await origins.proxy(origins.pins())
            let event = try await proxy.events.first("state.broken")
            #expect(event["file"] == bed.path(Self.file))
            #expect(try bed.contents(Self.file + ".broken") == "{\"entries\": 7")
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.passed)
            for _ in 1...3 { #expect(try await origins.ask(origins.right, via: proxy) == Self.passed) }
            _ = try await proxy.events.first("pin.enforced")
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.refused)
            // The running proxy keeps its state even without the file.
            try FileManager.default.removeItem(atPath: bed.path(Self.file))
            try await proxy.reload()
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.refused)
        }
    }

    /// A restart would forget it.
    @Test func whatCannotBeWrittenDownIsNotEnforced() async throws {
        try await withTestBed { bed in
            let origins = try await Origins(bed)
            let proxy = try await origins.proxy(origins.pins())
            try bed.file(Self.file + "/obstacle", "")
            for _ in 1...3 { #expect(try await origins.ask(origins.right, via: proxy) == Self.passed) }
            let event = try await proxy.events.first("state.unwritable")
            #expect(event["file"] == bed.path(Self.file))
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.passed)
            #expect(proxy.events.all("pin.enforced").isEmpty)
            try FileManager.default.removeItem(atPath: bed.path(Self.file))
            for _ in 1...3 { #expect(try await origins.ask(origins.right, via: proxy) == Self.passed) }
            _ = try await proxy.events.first("pin.enforced")
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.refused)
        }
    }

    /// The stages just above this machine's place, and just below.
    @Test func aStageIsForSomeMachines() async throws {
        let place = RolloutStage.ofThisMachine.place
        try await withTestBed { bed in
            let origins = try await Origins(bed)
            let proxy = try await origins.proxy(origins.pins(nil, "stage: \(place + 1)%"))
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.refused)
            guard place > 0 else { return }
            try bed.file("proxy/pins.yaml", origins.pins(nil, "stage: \(place)%"))
            try await proxy.reload()
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.passed)
            _ = try await proxy.events.first("pin.report")
            let text = "reported here: stage \(place)%, this machine has place \(place)"
            let status = try await origins.command("status")
            // A planned rollout isn't reported as insecure.
            #expect(status.contains("\n  \(text)\n") && !status.contains("insecure:"), "\(status)")
            let explained = try await origins.command("explain", "origin.test:\(origins.wrong.port)")
            #expect(explained.contains(text), "\(explained)")
        }
    }

    /// Long past, or far ahead.
    @Test func aDateDecides() async throws {
        try await withTestBed { bed in
            let origins = try await Origins(bed)
            let proxy = try await origins.proxy(origins.pins(nil, "enforcement: report\n    enforce_from: 2020-01-01"))
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.refused)
            try bed.file("proxy/pins.yaml", origins.pins(nil, "enforcement: report\n    enforce_from: 2199-01-01"))
            try await proxy.reload()
            #expect(try await origins.ask(origins.wrong, via: proxy) == Self.passed)
            #expect(try await origins.command("status").contains("  reported until 2199-01-01 (enforce_from)"))
        }
    }
}
