import Foundation
import Testing

/// `pinproxy run --handover`: the next proxy serves while this one finishes its requests in flight.
@Suite(.timeLimit(.minutes(5)))
struct HandoverTests {
    /// The option follows the command's own.
    private static let launcher = ["/bin/sh", "-c", "exec \"$@\" --handover", "sh"]

    private func prepare(_ bed: TestBed, timeouts: [String] = []) async throws -> SharedBed {
        try await OriginBed.prepare(bed, sections: ["timeouts": timeouts], launcher: Self.launcher)
    }

    /// Another proxy with the same state directory.
    private func next(_ shared: SharedBed) async throws -> ProxyProcess {
        try await ProxyProcess(
            in: shared.bed, trust: shared.bed.path("roots.pem"), hosts: [OriginBed.name: "127.0.0.1"],
            launcher: Self.launcher)
    }

    @Test func theNextServesWhileThisOneFinishes() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed)
            let client = try await shared.holdingClient()
            shared.proxy.process.send(signal: SIGTERM)
            #expect(try await shared.proxy.process.ending() == .exited(0))
            let handover = try await shared.proxy.events.first("proxy.handover")
            #expect(handover["level"] == "notice")
            let next = try await next(shared)
            let run = try await bed.run(["curl", "-sS", "\(shared.url)/large/5"], environment: next.clientEnvironment)
            #expect(run.succeeded && run.output.count == 5, "\(run)")
            // The files and sockets of the state directory are the next one's.
            let status = try await bed.run(
                [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(status.succeeded && status.output.contains("\(next.port)"), "\(status)")
            try await shared.release()
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text == "first,second")
            _ = try await shared.proxy.events.first("proxy.stop")
            let again = try await bed.run(
                ["curl", "-sS", "\(shared.url)/large/5"], environment: next.clientEnvironment)
            #expect(again.succeeded, "\(again)")
        }
    }

    /// Killing only the main process interrupts no exchange.
    @Test func aKilledMainProcessIsAHandover() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed)
            let client = try await shared.holdingClient()
            shared.proxy.process.send(signal: SIGKILL)
            let next = try await next(shared)
            let run = try await bed.run(["curl", "-sS", "\(shared.url)/large/5"], environment: next.clientEnvironment)
            #expect(run.succeeded, "\(run)")
            try await shared.release()
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text == "first,second")
            _ = try await shared.proxy.events.first("proxy.stop")
        }
    }

    @Test func whatIsHandedOverHasABound() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed, timeouts: ["handover: 200ms"])
            let client = try await shared.holdingClient()
            shared.proxy.process.send(signal: SIGTERM)
            let cut = try await shared.proxy.events.first("proxy.stop") { $0["level"] == "warning" }
            #expect(cut["cause"]?.hasPrefix("timeouts.handover has passed") == true, "\(cut)")
            #expect(try await client.ending() != .exited(0))
        }
    }

    /// The exit status is the proxy's own, for systemd's `RestartPreventExitStatus=`.
    @Test func aProxyThatCannotStartSaysSo() async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: 1\n", trust: nil)
            let arguments = [ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml")]
            let run = try await bed.run(arguments + ["--handover"], environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(78) && run.errors.contains("pins.yaml:1:"), "\(run)")
        }
    }

    /// A killed proxy takes its main process with it: the service manager starts both again.
    @Test func aKilledProxyIsReported() async throws {
        try await withTestBed { bed in
            let shared = try await prepare(bed)
            let ready = try await shared.proxy.events.first("proxy.ready")
            kill(try #require(ready["pid"].flatMap { pid_t($0) }), SIGKILL)
            #expect(try await shared.proxy.process.ending() == .exited(128 + SIGKILL))
        }
    }
}
