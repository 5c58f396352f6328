import Foundation
import Testing

/// The proxy as a systemd service: what it reports, what it is passed, and what survives it.
@Suite(.timeLimit(.minutes(5)))
struct ServiceTests {
    private func manager(
        _ bed: TestBed, listen: String = "127.0.0.1:0", socket: String = "proxy", options: [String] = []
    ) async throws -> PythonPeer {
        try ProxyProcess.write(
            to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil, sections: ["proxy": ["listen: \(listen)"]])
        try bed.file("proxy/hosts", "")
        return try await PythonPeer(
            in: bed, script: "service_manager.py",
            [
                bed.path("proxy/pinproxy.yaml"), "/usr/bin/env", "XDG_STATE_HOME=\(bed.path("proxy/state"))",
                ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml"),
            ] + options, launcher: ["/usr/bin/env", "SOCKET_NAME=\(socket)"])
    }

    private func process(_ events: EventLog, number: Int) async throws -> pid_t {
        let count = Counter()
        let event = try await events.first("started") { _ in count.next() == number }
        return try #require(event["pid"].flatMap { pid_t($0) })
    }

    /// Its sockets belong to systemd from the start, and stay open during a restart.
    @Test(arguments: [[], ["--handover"]]) func aRestartRefusesNoClient(options: [String]) async throws {
        try await withTestBed { bed in
            let manager = try await manager(bed, options: options)
            let first = try await process(manager.events, number: 1)
            let ready = try await manager.events.first("proxy.ready")
            #expect(ready["listen"] == "127.0.0.1:\(manager.port)", "\(ready)")
            _ = try await manager.events.first("notify") { $0["READY"] == "1" }
            kill(first, SIGTERM)
            let ended = try await manager.events.first("ended")
            #expect(ended["code"] == "0" && ended["stored"] == "1", "\(ended)")
            // Asked between the two, answered by the second.
            let answer = try await manager.events.first("answered")
            #expect(answer["line"]?.hasPrefix("HTTP/1.1 400") == true, "\(answer)")
            kill(try await process(manager.events, number: 2), SIGTERM)
            #expect(try await manager.process.ending() == .exited(0))
        }
    }

    /// `listen: systemd`: whatever address the unit has, and at each start.
    @Test(arguments: [[], ["--handover"]]) func theSocketsThatSystemdNamesAreTaken(options: [String]) async throws {
        try await withTestBed { bed in
            let manager = try await manager(bed, listen: "systemd", options: options)
            let first = try await process(manager.events, number: 1)
            let ready = try await manager.events.first("proxy.ready")
            #expect(ready["listen"] == "127.0.0.1:\(manager.port)", "\(ready)")
            #expect(try bed.contents("proxy/state/pinproxy/listen") == "127.0.0.1:\(manager.port)\n")
            // A reload can't have others.
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil,
                sections: ["proxy": ["listen: 127.0.0.1:0"]])
            kill(first, SIGHUP)
            let warning = try await manager.events.first("config.warning") {
                $0["cause"]?.hasPrefix("proxy.listen (systemd) has changed") == true
            }
            #expect(warning["cause"]?.contains("at the next start") == true, "\(warning)")
            #expect((try? RawConnection(port: manager.port)) != nil)
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil, sections: ["proxy": ["listen: systemd"]])
            kill(first, SIGTERM)
            let ended = try await manager.events.first("ended")
            // systemd has it already.
            #expect(ended["code"] == "0" && ended["stored"] == "0", "\(ended)")
            let answer = try await manager.events.first("answered")
            #expect(answer["line"]?.hasPrefix("HTTP/1.1 400") == true, "\(answer)")
            kill(try await process(manager.events, number: 2), SIGTERM)
            #expect(try await manager.process.ending() == .exited(0))
        }
    }

    /// The configuration and the units disagree. The proxy doesn't guess, and isn't restarted.
    @Test(arguments: ["other", "admin"])
    func aSocketOfAnotherNameIsNotTheProxys(_ name: String) async throws {
        try await withTestBed { bed in
            let manager = try await manager(bed, listen: "systemd", socket: name)
            let ended = try await manager.events.first("ended")
            #expect(ended["code"] == "78", "\(ended)")
            try await eventually("the reason") {
                manager.process.output.lines.contains {
                    $0.contains(
                        """
                        proxy.listen is systemd, and systemd hands over no TCP socket named \"proxy\": start \
                        pinproxy.socket
                        """
                    )
                }
            }
        }
    }

    @Test func whatItDoesIsSaid() async throws {
        try await withTestBed { bed in
            let manager = try await manager(bed)
            let process = try await process(manager.events, number: 1)
            _ = try await manager.events.first("notify") { $0["READY"] == "1" }
            let alive = try await manager.events.first("notify") { $0["WATCHDOG"] == "1" }
            let idle = "Listening on 127.0.0.1:\(manager.port); clients: 0; requests: 0; network: "
            #expect(alive["STATUS"]?.hasPrefix(idle) == true, "\(alive)")
            let client = try RawConnection(port: manager.port)
            do {
                let other = try RawConnection(port: manager.port)
                try await other.send("CONNECT \"a.test:1\" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                _ = try await other.response()
            }
            _ = try await manager.events.first("notify") {
                $0["STATUS"]?.contains("; clients: 1; requests: 1;") == true
            }
            kill(process, SIGHUP)
            let reloading = try await manager.events.first("notify") { $0["RELOADING"] == "1" }
            #expect(reloading["MONOTONIC_USEC"].flatMap { Int($0) } ?? 0 > 0, "\(reloading)")
            let count = Counter()
            _ = try await manager.events.first("notify") { $0["READY"] == "1" && count.next() == 2 }
            kill(process, SIGTERM)
            _ = try await manager.events.first("notify") { $0["STOPPING"] == "1" }
            withExtendedLifetime(client) {}
        }
    }

    /// The fields that `journalctl PINPROXY_EVENT=… -p err` searches, with standard error connected to the journal.
    @Test(.enabled(if: getuid() == 0, "a directory is mounted over /run"))
    func theJournalHasFieldsAndPriorities() async throws {
        try await withTestBed { bed in
            let journal = try await PythonPeer(in: bed, script: "journal.py", [bed.path("socket")])
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            try bed.file("proxy/hosts", "")
            let script = """
                mount -t tmpfs none /run && mkdir -p /run/systemd/journal && ln -s '\(bed.path("socket"))' \
                /run/systemd/journal/socket
                JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$@"
                """
            let proxy = try await bed.start(
                [
                    "unshare", "-m", "/bin/sh", "-c", script, "sh", ProxyProcess.executable, "run", "--config",
                    bed.path("proxy/pinproxy.yaml"),
                ], environment: ProxyProcess.environment(in: bed))
            let ready = try await journal.events.first("record") { $0["PINPROXY_EVENT"] == "proxy.ready" }
            #expect(ready["PRIORITY"] == "5" && ready["SYSLOG_IDENTIFIER"] == "pinproxy", "\(ready)")
            #expect(ready["MESSAGE"]?.hasPrefix("proxy.ready listen=127.0.0.1:") == true, "\(ready)")
            let port = try #require(ready["PINPROXY_LISTEN"]?.split(separator: ":").last.flatMap { UInt16($0) })
            let connection = try RawConnection(port: port)
            try await connection.send("CONNECT \"a.test:1\" HTTP/1.1\r\nHost: a\r\n\r\n")
            let exchange = try await journal.events.first("record") { $0["PINPROXY_EVENT"] == "exchange" }
            #expect(exchange["PRIORITY"] == "6" && exchange["PINPROXY_STATUS"] == "400", "\(exchange)")

            // A broken file is an error. A reload changes the level, and switches from the journal to lines.
            try bed.file("proxy/pins.yaml", "hosts: 1\n")
            proxy.send(signal: SIGHUP)
            let error = try await journal.events.first("record") { $0["PINPROXY_EVENT"] == "config.error" }
            #expect(error["PRIORITY"] == "3" && error["PINPROXY_CAUSE"]?.contains("pins.yaml") == true, "\(error)")
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil, sections: ["log": ["format: json"]])
            proxy.send(signal: SIGHUP)
            _ = try await EventLog(lines: proxy.errors).first("config.reload")
            proxy.send(signal: SIGTERM)
            #expect(try await proxy.ending() == .exited(0))
        }
    }
}
