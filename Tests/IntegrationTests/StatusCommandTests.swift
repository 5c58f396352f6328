import Foundation
import Testing

/// `pinproxy status` of a proxy with something to report, and `--watch`.
@Suite(.timeLimit(.minutes(5)))
struct StatusCommandTests {
    private static let wrong = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func prepared(_ bed: TestBed) async throws -> (shared: SharedBed, tasks: TaskControl, soon: String) {
        let soon = Date(timeIntervalSinceNow: 5 * 86_400).formatted(.iso8601.year().month().day())
        let pins = """
            hosts:
              - {match: denied.test, action: deny}
              - {match: soon.test, pinning: public-key, pins: [\(Self.wrong)], expires: \(soon)}
              - {match: careless.test, validates_domain_name: false}

            """
        let shared = try await OriginBed.prepare(bed, pins: pins, sections: AdminClient.section)
        return (shared, TaskControl(bed: bed, proxy: shared.proxy), soon)
    }

    @Test func itTellsWhatAPersonAsksFirst() async throws {
        try await withTestBed { bed in
            let (shared, tasks, soon) = try await prepared(bed)
            #expect(try await shared.curl(shared.plainURL + "/echo").succeeded)
            #expect(try await shared.proxy.connect(to: "denied.test:443").status == 403)
            let held = try await bed.start(
                ["curl", "-sS", shared.plainURL + "/hold/s"], environment: shared.proxy.clientEnvironment)
            _ = try await shared.plainOrigin?.events.first("held")
            let run = try await tasks.pinproxy("status")
            #expect(run.succeeded, "\(run)")
            let lines = run.output.split(separator: "\n").map(String.init)
            func line(_ beginning: String) -> String {
                lines.first { $0.hasPrefix(beginning) } ?? "no line begins with \(beginning): \(run)"
            }
            #expect(line("running: process \(shared.proxy.process.identifier),").contains("state directory"))
            #expect(line("up since 20").contains("version 0"))
            #expect(line("configuration: ").contains("pinproxy.yaml, read 20"))
            #expect(
                line("listening on 127.0.0.1:\(shared.proxy.port), ").hasSuffix("client")
                    || line("listening on").hasSuffix("clients"))
            #expect(line("admin port: 127.0.0.1:").count > 10)
            #expect(line("requests: ") == "requests: 2 since the start, 1 of them refused; 1 in flight")
            #expect(line("network: ").count > 10)
            #expect(line("insecure: ").contains("careless.test") || line("insecure: ").contains("name"))
            #expect(line("ends \(soon)").contains("of soon.test"))
            #expect(line("refused 20").contains("CONNECT denied.test: "))
            // Equal ones are one line.
            for _ in 1...4 { #expect(try await shared.proxy.connect(to: "denied.test:443").status == 403) }
            let again = try await tasks.pinproxy("status").output.split(separator: "\n").filter {
                $0.hasPrefix("refused 20")
            }
            #expect(
                again.count == 1 && again[0].contains("(5 times since 20")
                    && again[0].contains("CONNECT denied.test: "), "\(again)")
            // A refused reload is reported, and so is the next one.
            let good = try bed.contents("proxy/pins.yaml")
            try bed.file("proxy/pins.yaml", "hosts: [{match: \"*\"}]\n")
            #expect(try await shared.proxy.reload().name == "config.error")
            #expect(try await tasks.pinproxy("status").output.contains("last reload: refused; pinproxy check says why"))
            try bed.file("proxy/pins.yaml", good)
            #expect(try await shared.proxy.reload().name == "config.reload")
            #expect(try await tasks.pinproxy("status").output.contains("last reload: accepted\n"))
            _ = try await shared.curl(shared.plainURL + "/release/s")
            #expect(try await held.ending() == .exited(0))
        }
    }

    /// Prints reports repeatedly until the proxy exits.
    @Test func itWatches() async throws {
        try await withTestBed { bed in
            let (shared, _, _) = try await prepared(bed)
            let watch = try await bed.start(
                [ProxyProcess.executable, "status", "--watch", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            try await eventually("the first report") {
                watch.output.lines.contains { $0.hasPrefix("requests: 0 since the start, 0 of them refused") }
            }
            #expect(try await shared.proxy.connect(to: "denied.test:443").status == 403)
            try await eventually("the refusal") {
                let text = watch.output.lines.joined(separator: "\n")
                return text.contains("requests: 1 since the start, 1 of them refused")
                    && text.contains("CONNECT denied.test: ")
            }
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await watch.ending() == .exited(1))
            #expect(await watch.output.text.contains("not running"))
        }
        try await withTestBed { bed in
            let run = try await bed.run([ProxyProcess.executable, "status", "--watch", "--json"])
            #expect(run.ending == .exited(2) && run.errors.contains("--watch is for people"), "\(run)")
        }
    }
}
