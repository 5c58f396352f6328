import Foundation
import PinproxyTestAuthority
import Testing

@testable import PinproxyClients

/// Clients that distrust the proxy's authority and leave silently are reported; others aren't.
@Suite(.sharedBed(ExecRefusalBed.prepare), .timeLimit(.minutes(5)))
struct ExecDistrustTests {
    let shared: SharedBed

    init() throws {
        shared = try sharedBed()
    }

    private var host: String { "right.test:\(shared.originPort)" }

    private func leave(_ steps: String) async throws -> Run {
        let command =
            [PythonPeer.python, PythonPeer.path("leave.py"), host] + steps.split(separator: " ").map(String.init)
        return try await shared.bed.run(
            shared.bed.execArguments(["--no-trust"], command), environment: ProxyProcess.environment(in: shared.bed))
    }

    @Test(arguments: [
        "notify", "close", "reset", "tls1.2 notify", "tls1.2 close", "tls1.2 reset", "h2 close", "h2 tls1.2 notify",
    ])
    func whoLeavesAfterTheHandshakeIsTold(steps: String) async throws {
        let run = try await leave(steps)
        #expect(run.succeeded, "\(run)")
        #expect(run.told.count == 1 && run.told[0].hasPrefix("pinproxy: \(host): \(ClientDeparture.cause)"), "\(run)")
    }

    @Test(arguments: ["vanish", "tls1.2 vanish"]) func whoLeavesWithinItIsTold(steps: String) async throws {
        let run = try await leave(steps)
        #expect(run.succeeded, "\(run)")
        #expect(
            run.told.count == 1 && run.told[0].contains("handshake failed")
                && run.told[0].contains("it seems not to trust the proxy's authority"), "\(run)")
    }

    /// Spare connections, as browsers open them: before the one with the request, after it, and both.
    @Test(arguments: ["ask", "close ask", "ask close", "reset notify ask reset", "tls1.2 ask notify"])
    func whoAsksAtAllIsNot(steps: String) async throws {
        let run = try await leave(steps)
        #expect(run.succeeded && run.errors.isEmpty, "\(run)")
    }

    /// A stream refused for a malformed field isn't silence. The run learns the reason.
    @Test func whoAsksInAWayThatIsRefusedIsToldThat() async throws {
        let run = try await leave("malformed")
        #expect(run.succeeded && run.told.count == 1, "\(run)")
        #expect(
            run.told.first?.hasPrefix("pinproxy: \(host): the client sent a field that is malformed") == true, "\(run)")
    }

    /// A request by one program of a run proves nothing about another program.
    @Test func anotherProgramsRequestIsNoTrust() async throws {
        let run = try await leave("agent:one/1 ask agent:other/1 close")
        #expect(run.succeeded && run.told.count == 1, "\(run)")
        #expect(run.told.first?.hasPrefix("pinproxy: \(host): \(ClientDeparture.cause)") == true, "\(run)")
    }

    /// A real client: git with GnuTLS verifies after the handshake. No other client has used this proxy.
    @Test func gitIsToldInTheRunAndInTheLog() async throws {
        try await withTestBed { bed in
            let shared = try await ExecRefusalBed.prepare(bed)
            let host = "right.test:\(shared.originPort)"
            let run = try await bed.exec(
                options: ["--no-trust"], "env", "-u", "GIT_SSL_CAINFO", "-u", "SSL_CERT_FILE", "git", "ls-remote",
                "https://\(host)/x")
            guard run.errors.contains("verification failed") else {
                // A git with OpenSSL gives the reason in an alert.
                #expect(run.told.contains { $0.contains("does not trust") }, "\(run)")
                return
            }
            #expect(
                run.told.count == 1 && run.told[0].hasPrefix("pinproxy: \(host): \(ClientDeparture.cause)"), "\(run)")
            let event = try await shared.proxy.events.first("client.distrust")
            #expect(event["host"] == "right.test" && event["port"] == "\(shared.originPort)", "\(event)")
            #expect(event["cause"] == ClientDeparture.cause && event["client_uid"] == "\(getuid())", "\(event)")
        }
    }
}
