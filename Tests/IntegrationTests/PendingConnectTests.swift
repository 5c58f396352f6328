import Foundation
import PinproxyTestAuthority
import Testing

/// A CONNECT without an upstream connection when the proxy stops or is reloaded: how it ends, and how many handshakes
/// its origin sees.
@Suite(.timeLimit(.minutes(5)))
struct PendingConnectTests {
    private static let name = VerifiedTunnelBed.name

    /// An origin that holds back its answers to ClientHellos, and a proxy that pins it.
    private struct Held {
        let bed: VerifiedTunnelBed
        let origin: PythonPeer
        let proxy: ProxyProcess
        let action: String

        init(
            _ bed: TestBed, action: String, plans: [String] = ["chain=pinned,hold=1"],
            sections: ProxyProcess.Sections = [:]
        ) async throws {
            self.bed = try await VerifiedTunnelBed(bed)
            self.action = action
            origin = try await PythonPeer(in: bed, script: "tunnel_origin.py", plans)
            proxy = try await ProxyProcess(
                in: bed, pins: try await Self.pins(self.bed, action: action), trust: bed.path("roots.pem"),
                hosts: [name: "127.0.0.1"], sections: sections)
        }

        private static func pins(_ bed: VerifiedTunnelBed, action: String, backup: String? = nil) async throws -> String
        {
            let pins = [try await bed.pinned.pin(bed.bed)] + (backup.map { [$0] } ?? [])
            let pinning = action == "tunnel" ? "" : ", pinning: public-key, pins: [\(pins.joined(separator: ", "))]"
            return "hosts:\n  - {match: \(name), action: \(action)\(pinning)}\n"
        }

        var authority: String { "\(name):\(origin.port)" }
        var hellos: Int { origin.events.all("hello").count }

        /// A CONNECT that waits for the origin's handshake.
        func pending() async throws -> RawConnection {
            let client = try RawConnection(to: proxy)
            try await client.send("CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\r\n")
            _ = try await origin.events.first("hello", number: 1)
            return client
        }

        /// A curl request that waits for the origin's handshake.
        func pendingCurl() async throws -> ChildProcess {
            let trust = action == "intercept" ? proxy.authority : bed.bed.path("roots.pem")
            // Probes offer what clients usually offer.
            let client = try await bed.bed.start([
                "curl", "-sS", action == "verify-tunnel" ? "--http2" : "--http1.1", "--proxy", proxy.url, "--cacert",
                trust, "https://\(authority)/",
            ])
            _ = try await origin.events.first("hello", number: 1)
            return client
        }

        /// Lets the origin answer: the ClientHello with `hold=1`, then that with `hold=2`.
        func release() async throws {
            try await RawConnection(port: origin.port).send("GO")
        }

        func stop() async throws {
            proxy.process.send(signal: SIGTERM)
            try await eventually("the port to be closed") { (try? RawConnection(to: proxy)) == nil }
        }

        /// Applies another policy for the host.
        func changePolicy(backup: String) async throws {
            try bed.bed.file("proxy/pins.yaml", try await Self.pins(bed, action: action, backup: backup))
            #expect(try await proxy.reload().name == "config.reload")
        }
    }

    private static let backups = (1...2).map { "sha256/\(String(repeating: "\($0)", count: 42))8=" }

    // MARK: Stop

    /// The origin is slow, as most are. The client doesn't notice the stop.
    @Test(arguments: [("intercept", 1), ("verify-tunnel", 2), ("tunnel", 1)])
    func aStopLetsItFinish(action: String, handshakes: Int) async throws {
        try await withTestBed { bed in
            let held = try await Held(
                bed, action: action, sections: ["timeouts": ["drain: 10m", "drain_tunnels: 30s", "idle_upstream: 1s"]])
            let client = try await held.pendingCurl()
            try await held.stop()
            try await held.release()
            #expect(try await client.ending() == .exited(0))
            #expect(await client.output.text == "handshake \(handshakes)")
            #expect(try await held.proxy.process.ending() == .exited(0))
            #expect(held.hellos == handshakes)
        }
    }

    /// The origin takes longer than the stop: the client gets an answer, and may retry.
    @Test(
        arguments: ["intercept", "verify-tunnel"],
        [["drain: 10m", "drain_tunnels: 50ms"], ["drain: 50ms", "drain_tunnels: 10m"]])
    func aStopDoesNotWaitForItsOrigin(action: String, timeouts: [String]) async throws {
        try await withTestBed { bed in
            let held = try await Held(bed, action: action, sections: ["timeouts": timeouts])
            let client = try await held.pending()
            held.proxy.process.send(signal: SIGTERM)
            let answer = try await client.response()
            #expect(answer.status == 503 && answer["Retry-After"] == "5", "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("the proxy is stopping") == true, "\(answer)")
            try await client.end()
            #expect(try await held.proxy.process.ending() == .exited(0))
            #expect(held.hellos == 1)
            let line = try await held.proxy.events.first("exchange")
            #expect(line["cause"]?.hasPrefix("the proxy is stopping") == true && line["status"] == "503", "\(line)")
        }
    }

    @Test func aSecondSignalEndsItAtOnce() async throws {
        try await withTestBed { bed in
            let held = try await Held(
                bed, action: "intercept", sections: ["timeouts": ["drain: 10m", "drain_tunnels: 10m"]])
            let client = try await held.pending()
            try await held.stop()
            held.proxy.process.send(signal: SIGTERM)
            #expect(try await client.response().status == 503)
            #expect(try await held.proxy.process.ending() == .exited(0))
            #expect(held.hellos == 1)
        }
    }

    /// A suspended CONNECT has no deadline, but the stop does.
    @Test func aSuspendedOneIsToldWhenTheStopIsOver() async throws {
        try await withTestBed { bed in
            let held = try await Held(
                bed, action: "intercept", sections: ["timeouts": ["drain: 1s", "drain_tunnels: 50ms"]])
            let client = try await held.pending()
            let tasks = TaskControl(bed: bed, proxy: held.proxy)
            try await tasks.order("suspend", tasks.only().id)
            held.proxy.process.send(signal: SIGTERM)
            #expect(try await client.response().status == 503)
            #expect(try await held.proxy.process.ending() == .exited(0))
            let cut = try await held.proxy.events.first("proxy.stop") {
                $0["cause"]?.hasPrefix("timeouts.drain") == true
            }
            #expect(cut["level"] == "warning", "\(cut)")
        }
    }

    // MARK: Reload

    /// One more connection is made, under the current policy.
    @Test(arguments: ["intercept", "verify-tunnel"])
    func aReloadHasItMadeOnceMore(action: String) async throws {
        try await withTestBed { bed in
            let held = try await Held(bed, action: action)
            let client = try await held.pending()
            try await held.changePolicy(backup: Self.backups[0])
            try await held.release()
            #expect(try await client.response().status == 200)
            #expect(held.hellos == 2)
        }
    }

    /// However often the configuration changes, there is no third connection.
    @Test(arguments: ["intercept", "verify-tunnel"])
    func reloadsCanNotHaveItMadeAgainAndAgain(action: String) async throws {
        try await withTestBed { bed in
            let held = try await Held(bed, action: action, plans: ["chain=pinned,hold=1", "chain=pinned,hold=2"])
            let client = try await held.pending()
            try await held.changePolicy(backup: Self.backups[0])
            try await held.release()
            _ = try await held.origin.events.first("hello", number: 2)
            try await held.changePolicy(backup: Self.backups[1])
            try await held.release()
            let answer = try await client.response()
            #expect(answer.status == 503 && answer["Retry-After"] == "5", "\(answer)")
            #expect(answer["Proxy-Status"]?.contains("the configuration changed twice while") == true, "\(answer)")
            #expect(held.hellos == 2)
            // The same connection may ask again, under the current configuration.
            try await client.send("CONNECT \(held.authority) HTTP/1.1\r\nHost: \(held.authority)\r\n\r\n")
            #expect(try await client.response().status == 200)
            #expect(held.hellos == 3)
        }
    }

    /// A reload, then a stop: it starts nothing new for this CONNECT.
    @Test func aStopAfterAReloadEndsIt() async throws {
        try await withTestBed { bed in
            let held = try await Held(
                bed, action: "intercept", sections: ["timeouts": ["drain: 10m", "drain_tunnels: 10m"]])
            let client = try await held.pending()
            try await held.changePolicy(backup: Self.backups[0])
            try await held.stop()
            try await held.release()
            let answer = try await client.response()
            #expect(
                answer.status == 503 && answer["Proxy-Status"]?.contains("the proxy is stopping") == true, "\(answer)")
            try await client.end()
            #expect(try await held.proxy.process.ending() == .exited(0))
            #expect(held.hellos == 1)
        }
    }

    /// A client that may no longer use the proxy gets no connection under the new policy.
    @Test func aClientThatAReloadShutsOutIsRefused() async throws {
        try await withTestBed { bed in
            let held = try await Held(bed, action: "intercept")
            let client = try await held.pending()
            let file = bed.path("proxy/pinproxy.yaml")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            try await AuthenticationBed.usersFile(in: bed, folder: "proxy")
            try bed.file(
                "proxy/pinproxy.yaml", text.replacingOccurrences(of: "proxy:\n", with: "proxy:\n  users: users\n"))
            try await held.changePolicy(backup: Self.backups[0])
            try await held.release()
            #expect(try await client.response().status == 407)
            #expect(held.hellos == 1)
        }
    }

    // MARK: Restarts

    /// Successive restarts while clients send requests: each is answered, by one handshake with its origin.
    @Test func restartsUnderLoadAreBounded() async throws {
        try await withTestBed { bed in
            let tunnels = try await VerifiedTunnelBed(bed)
            let origin = try await tunnels.origin("chain=pinned,delay=0.1")
            let socket = try ListeningSocket()
            try ProxyProcess.write(
                to: bed, folder: "proxy",
                pins: try await tunnels.entry().replacingOccurrences(of: "verify-tunnel", with: "intercept"),
                trust: bed.path("roots.pem"), sections: ["proxy": ["listen: systemd"]])
            try bed.file("proxy/hosts", "127.0.0.1 \(Self.name)\n")
            let descriptor = socket.descriptor
            func start() async throws -> (process: ChildProcess, events: EventLog) {
                let process = try await bed.start(
                    [
                        "/bin/sh", "-c", "LISTEN_PID=$$; export LISTEN_PID; exec \"$@\"", "sh", ProxyProcess.executable,
                        "run",
                        "--config", bed.path("proxy/pinproxy.yaml"),
                    ],
                    environment: ProxyProcess.environment(in: bed).merging([
                        "LISTEN_FDS": "1", "LISTEN_FDNAMES": "proxy",
                    ]) { $1 },
                    inherited: [descriptor], mergingErrors: true)
                let events = EventLog(lines: process.output)
                _ = try await events.first("proxy.ready")
                return (process, events)
            }
            var proxy = try await start()
            let count = 150
            let client = try await bed.start([
                "curl", "-sS", "--parallel", "--parallel-max", "8", "-o", "/dev/null", "-w",
                "%{http_code} %{exitcode} %{errormsg}\\n",
                "--proxy", "http://127.0.0.1:\(socket.port)", "--cacert",
                bed.path("proxy/state/pinproxy/authority.pem"),
                "https://\(Self.name):\(origin.port)/[1-\(count)]",
            ])
            var restarts = 0
            while client.output.lines.count < count - 20, restarts < 20 {
                // Some CONNECT always waits for the origin.
                _ = try await origin.events.first("hello", number: origin.events.all("hello").count + 1)
                proxy.process.send(signal: SIGTERM)
                #expect(try await proxy.process.ending() == .exited(0))
                #expect(proxy.events.all("proxy.stop").allSatisfy { $0["level"] != "warning" })
                proxy = try await start()
                restarts += 1
            }
            #expect(try await client.ending() == .exited(0))
            let lines = await client.output.text.split(separator: "\n")
            #expect(lines.count { $0.hasPrefix("200 0") } == count, "\(lines.filter { !$0.hasPrefix("200 0") })")
            #expect(restarts > 2)
            #expect(origin.events.all("hello").count <= count + 8 * restarts)
        }
    }
}
