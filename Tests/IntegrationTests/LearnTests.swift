import Foundation
import PinproxyTestAuthority
import Testing

/// Learning with a real daemon, real hosts, and the real `patch`.
@Suite(.timeLimit(.minutes(5)))
struct LearnTests {
    private struct Bed {
        let bed: TestBed
        let roots: TestRoots
        let leaf: HeldCertificate
        let originPort: UInt16
        var proxy: ProxyProcess

        static let names = ["new.test", "other.test", "recorded.test", "report.test"]

        init(_ bed: TestBed, pins: String) async throws {
            self.bed = bed
            roots = try TestRoots()
            leaf = try roots.intermediate.issue(TestRoots.template(Self.names))
            originPort = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf)).port
            proxy = try await Self.proxy(bed, roots, pins: pins)
        }

        static func proxy(_ bed: TestBed, _ roots: TestRoots, pins: String) async throws -> ProxyProcess {
            try await ProxyProcess(
                in: bed, pins: pins, trust: roots.write(to: bed),
                hosts: names.reduce(into: [:]) { $0[$1] = "127.0.0.1" })
        }

        func get(_ host: String) async throws {
            let run = try await bed.curl(via: proxy, ["https://\(host):\(originPort)/echo"])
            #expect(run.succeeded, "\(run)")
        }

        func pinproxy(_ arguments: String...) async throws -> Run {
            try await bed.run(
                [ProxyProcess.executable] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
        }

        /// A `learn --for` that has notified the proxy and waits.
        func learning(for time: String) async throws -> ChildProcess {
            let learning = try await bed.start(
                [ProxyProcess.executable, "learn", "--for", time, "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            _ = try await learning.errors.first(awaiting: "its word") { $0.contains("learning until") ? true : nil }
            return learning
        }
    }

    private static func entry(_ host: String, _ lines: String...) -> String {
        "  - match: \(host)\n" + lines.map { "    \($0)\n" }.joined()
    }

    @Test func nothingIsEndedThatHasNotBegun() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, pins: "hosts: []\n")
            let idle = try await bed.pinproxy("learn", "--stop")
            #expect(idle.ending == .exited(1), "\(idle)")
            #expect(idle.errors.contains("was not learning"), "\(idle)")
            let learning = try await bed.learning(for: "1h")
            #expect(try await bed.pinproxy("learn", "--stop").succeeded)
            #expect(try await bed.pinproxy("learn", "--stop").ending == .exited(1))
            await learning.stop()
        }
    }

    @Test func whatIsLearnedIsADiffThatMakesPins() async throws {
        try await withTestBed { bed in
            let pins =
                "# mine\nhosts:\n"
                + Self.entry(
                    "report.test", "pinning: public-key", "enforcement: report",
                    "pins:", "  - \(String.wrongPin)   # on purpose") + "\n# the end\n"
            let bed = try await Bed(bed, pins: pins)
            // Earlier connections are not recorded.
            try await bed.get("other.test")
            let learning = try await bed.learning(for: "1h")
            try await bed.get("new.test")
            try await bed.get("report.test")
            let learned = try await bed.pinproxy("learn")
            #expect(learned.succeeded, "\(learned)")
            #expect(!learned.output.contains("match: other.test"), "\(learned)")
            #expect(try bed.bed.contents("proxy/pins.yaml") == pins)

            // The working directory is above the pin file, so the path is relative to it.
            #expect(learned.output.hasPrefix("--- proxy/pins.yaml\n"), "\(learned)")
            let patch = try await bed.bed.run(["patch", "-p0"], input: Array((learned.output + "\n").utf8))
            #expect(patch.succeeded && patch.output == "patching file proxy/pins.yaml", "\(patch)\n\(learned)")
            let check = try await bed.pinproxy("check")
            #expect(check.succeeded, "\(check)")
            let text = try bed.bed.contents("proxy/pins.yaml")
            for kept in ["# mine\n", "   # on purpose\n", "\n# the end\n"] { #expect(text.contains(kept), "\(text)") }
            #expect(try await bed.pinproxy("reload").succeeded)
            _ = try await bed.proxy.events.first("pin.report")
            #expect(bed.proxy.events.all("pin.report").map { $0["host"] } == ["report.test"])

            // The pins are right: those of the leaf and of its issuer, by another program's count.
            for pin in [try await bed.leaf.pin(bed.bed), try await bed.roots.intermediate.pin(bed.bed)] {
                #expect(text.components(separatedBy: pin).count == 3, "\(text)")
            }
            try await bed.get("new.test")
            try await bed.get("report.test")
            #expect(bed.proxy.events.all("pin.report").count == 1)
            let again = try await bed.pinproxy("learn")
            #expect(again.succeeded && again.output.isEmpty, "\(again)")

            learning.send(signal: SIGINT)
            #expect(try await learning.ending() == .exited(0))
            #expect(await learning.errors.text.contains("keeps learning"))
            #expect(await learning.output.text.isEmpty)
        }
    }

    @Test func learningOutlivesARestartAndEnds() async throws {
        try await withTestBed { bed in
            var bed = try await Bed(bed, pins: "hosts: []\n")
            let learning = try await bed.learning(for: "1h")
            learning.send(signal: SIGTERM)
            _ = try await learning.ending()
            bed.proxy.process.send(signal: SIGTERM)
            _ = try await bed.proxy.process.ending()
            bed.proxy = try await Bed.proxy(bed.bed, bed.roots, pins: "hosts: []\n")
            _ = try await bed.proxy.events.first("learn.begin")
            try await bed.get("new.test")
            let stop = try await bed.pinproxy("learn", "--stop")
            #expect(stop.succeeded, "\(stop)")
            _ = try await bed.proxy.events.first("learn.end")
            try await bed.get("other.test")
            let learned = try await bed.pinproxy("learn")
            #expect(learned.output.contains("match: new.test:\(bed.originPort)"), "\(learned)")
            #expect(!learned.output.contains("match: other.test"), "\(learned)")
            // No other user may read which hosts were visited.
            let file = bed.bed.path("proxy/state/pinproxy/chains.json")
            #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)

            #expect(try await bed.pinproxy("learn", "--forget").succeeded)
            let none = try await bed.pinproxy("learn")
            #expect(none.succeeded && none.output.isEmpty, "\(none)")
            #expect(none.errors.contains("nothing has been recorded"))
        }
    }

    @Test func theDiffIsPrintedWhenTheTimeIsOver() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(bed, pins: "hosts:\n" + Self.entry("recorded.test", "record: true"))
            // Recorded without a `learn`: the entry requests it.
            try await bed.get("recorded.test")
            try await bed.get("new.test")
            let learned = try await bed.pinproxy("learn", "--for", "1s")
            #expect(learned.succeeded, "\(learned)")
            #expect(learned.output.contains("+    pinning: public-key"), "\(learned)")
            #expect(!learned.output.contains("match: new.test"), "\(learned)")
        }
    }

    @Test func aChainThatIsNotTrustedIsNotLearned() async throws {
        try await withTestBed { bed in
            let bed = try await Bed(
                bed,
                pins: "hosts:\n"
                    + Self.entry(
                        "new.test", "record: true", "pinning: public-key", "pins: [\(String.wrongPin)]"))
            let stranger = try TestRoots("Stranger").leaf("other.test")
            let port = try await PythonPeer.origin(in: bed.bed, name: "stranger", chain: ServedChain(stranger)).port
            let learning = try await bed.learning(for: "1h")
            #expect(try await !bed.bed.curl(via: bed.proxy, ["https://other.test:\(port)/"]).succeeded)
            // Trusted, but refused for its pins.
            #expect(try await !bed.bed.curl(via: bed.proxy, ["https://new.test:\(bed.originPort)/"]).succeeded)
            let learned = try await bed.pinproxy("learn")
            #expect(learned.output.isEmpty && learned.errors.contains("nothing has been recorded"), "\(learned)")
            learning.send(signal: SIGINT)
        }
    }

    @Test func withoutAProxyItSaysSo() async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            let run = try await bed.run(
                [ProxyProcess.executable, "learn", "--for", "1h", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(1))
            #expect(run.errors.contains("no proxy is running"), "\(run)")
            for wrong in [["--for", "soon"], ["--for", "91d"], ["--for", "1d", "--stop"]] {
                let run = try await bed.run(
                    [ProxyProcess.executable, "learn"] + wrong, environment: ProxyProcess.environment(in: bed))
                #expect(run.ending == .exited(2), "\(run)")
            }
        }
    }

    /// No proxy is running to be asked: an earlier proxy's file is changed.
    @Test func whatAProxyThatHasEndedLearnsIsChangedInItsFile() async throws {
        try await withTestBed { bed in
            var bed = try await Bed(bed, pins: "hosts: []\n")
            let learning = try await bed.learning(for: "1h")
            try await bed.get("new.test")
            learning.send(signal: SIGINT)
            _ = try await learning.ending()
            bed.proxy.process.send(signal: SIGTERM)
            _ = try await bed.proxy.process.ending()
            let stop = try await bed.pinproxy("learn", "--stop")
            #expect(stop.succeeded, "\(stop)")
            #expect(try await bed.pinproxy("learn", "--stop").ending == .exited(1))
            #expect(try await bed.pinproxy("learn").output.contains("match: new.test"))
            #expect(try await bed.pinproxy("learn", "--forget").succeeded)
            bed.proxy = try await Bed.proxy(bed.bed, bed.roots, pins: "hosts: []\n")
            try await bed.get("other.test")
            #expect(try await bed.pinproxy("learn").output.isEmpty)
            #expect(bed.proxy.events.all("learn.begin").isEmpty)
        }
    }
}
