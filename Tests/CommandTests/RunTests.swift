import Foundation
import Testing

/// The daemon's life as seen from the command line.
@Suite(.serialized) struct RunTests {
    /// A running proxy on a port chosen by the system.
    private final class Daemon {
        let process = Process()
        private let log = Pipe()

        /// - Parameter before: shell commands, each ended by `;`.
        init(_ bed: CommandBed, before: String = "") throws {
            // The shell becomes the proxy, so its commands run under the proxy's process ID.
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = [
                "-c", "\(before)exec \"$0\" run --config \"$1\"", CommandBed.executable, bed.path("pinproxy.yaml"),
            ]
            process.environment = bed.environment
            process.standardError = log
            try process.run()
            var said = Data()
            while !String(decoding: said, as: UTF8.self).contains("\"event\":\"proxy.ready\"") {
                let more = log.fileHandleForReading.availableData
                try #require(!more.isEmpty, "it ended: \(String(decoding: said, as: UTF8.self))")
                said += more
            }
        }

        deinit {
            if process.isRunning { process.terminate() }
            process.waitUntilExit()
        }

        func end(by signal: Int32) -> Int32 {
            kill(process.processIdentifier, signal)
            process.waitUntilExit()
            return process.terminationStatus
        }
    }

    private func bed() throws -> CommandBed {
        let bed = try CommandBed(configuration: "proxy: {listen: 127.0.0.1:0, workers: 1}\npins: pins.yaml\n")
        try bed.write("pins.yaml", "hosts: []\n")
        return bed
    }

    @Test func tellsWhetherAReloadWasAccepted() throws {
        let bed = try bed()
        let daemon = try Daemon(bed)
        for _ in 1...2 {
            #expect(
                try bed.configured("reload")
                    == .init(
                        code: 0,
                        output: "reloaded: process \(daemon.process.processIdentifier) has read "
                            + "\(bed.path("pinproxy.yaml")) again\n", errors: ""))
        }
        try bed.write("pins.yaml", "hosts: [{match: a.test, pinnig: none}]\n")
        let refused = try bed.configured("reload")
        #expect(refused.code == 78)
        #expect(refused.output == "")
        #expect(
            refused.errors == """
                \(bed.path("pins.yaml")):1:25: error: unknown key "pinnig" in "hosts"; did you mean "pinning"?
                pinproxy: process \(daemon.process.processIdentifier) refused the new \(bed.path("pinproxy.yaml")) and \
                keeps the configuration that it has

                """)
        try bed.write("pins.yaml", "hosts: [{match: a.test, pinning: none}]\n")
        #expect(try bed.configured("reload").code == 0)
        #expect(daemon.end(by: SIGTERM) == 0)
        #expect(try bed.configured("reload").code == 1)
    }

    /// A command that names a configuration ignores a proxy with another one.
    @Test func aProxyOfAnotherConfigurationIsLeftAlone() throws {
        let bed = try bed()
        let daemon = try Daemon(bed)
        try bed.write("other.yaml", "pins: null\n")
        // The proxy would refuse this, and say so, if it were asked.
        try bed.write("pins.yaml", "hosts: 7\n")
        let outcome = try bed.run("reload", "--config", "other.yaml")
        #expect(outcome.code == 1 && outcome.output == "", "\(outcome)")
        #expect(
            outcome.errors.contains(
                "process \(daemon.process.processIdentifier), which uses \(bed.path("state/pinproxy")), reads "
                    + "\(bed.path("pinproxy.yaml")) and not other.yaml, so no request was sent"), "\(outcome)")
        #expect(try !bed.run("status", "--json", "--config", "other.yaml").output.contains("last_reload"))
        // By another path to the same file.
        #expect(try bed.run("reload", "--config", "./state/../pinproxy.yaml").code == 78)
        #expect(daemon.end(by: SIGTERM) == 0)
    }

    /// Files in the state directory can't disturb a reload: neither an unwritable one nor one that an earlier process
    /// with the same ID left.
    @Test(arguments: [
        "mkdir -p $XDG_STATE_HOME/pinproxy/reload.status;",
        "mkdir -p $XDG_STATE_HOME/pinproxy/reload.status/x; touch $XDG_STATE_HOME/pinproxy/reload.status.$$;",
        "mkdir -p $XDG_STATE_HOME/pinproxy; printf '%s 99\\naccepted\\n' $$ > $XDG_STATE_HOME/pinproxy/reload.status;",
        "mkdir -p $XDG_STATE_HOME/pinproxy; touch $XDG_STATE_HOME/pinproxy/reload.status.$$;",
    ])
    func tellsTheTruthWhateverIsInTheStateDirectory(_ before: String) throws {
        let bed = try bed()
        let daemon = try Daemon(bed, before: before)
        #expect(try bed.configured("reload").code == 0)
        try bed.write("pins.yaml", "hosts: 7\n")
        #expect(try bed.configured("reload").code == 78)
        let status = try bed.configured("status", "--json")
        #expect(status.output.contains("\"last_reload\" : \"refused\""), "\(status)")
        #expect(daemon.end(by: SIGTERM) == 0)
    }

    @Test func saysThatTheProxyEndedBeforeItAnswered() throws {
        let bed = try bed()
        let daemon = try Daemon(bed)
        let identifier = daemon.process.processIdentifier
        kill(identifier, SIGSTOP)
        // The command asks, and waits; then the proxy ends without an answer.
        let command = [CommandBed.executable, "reload", "--config", bed.path("pinproxy.yaml")]
        let (directory, environment) = (bed.directory, bed.environment)
        let asked = Thread.inBackground { try CommandBed.run(command, in: directory, environment: environment) }
        try waitForConnection(to: bed.path("state/pinproxy/control.sock"))
        kill(identifier, SIGKILL)
        let outcome = try asked.get()
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("process \(identifier) ended before it answered"), "\(outcome)")
    }

    /// Waits until the kernel lists two sockets of that name: the listener and an accepted connection.
    private func waitForConnection(to path: String) throws {
        let end = Date.now + 30
        while Date.now < end {
            // The file reports no size, so it is read in pieces.
            let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/net/unix"))
            var table = Data()
            while let piece = try file.read(upToCount: 1 << 16), !piece.isEmpty { table += piece }
            let sockets = String(decoding: table, as: UTF8.self)
            if sockets.split(separator: "\n").count(where: { $0.hasSuffix(path) }) > 1 { return }
            usleep(5000)
        }
        Issue.record("nobody has connected to \(path)")
    }

    @Test func refusesASecondOneInTheSameStateDirectory() throws {
        let bed = try bed()
        let daemon = try Daemon(bed)
        let second = try bed.configured("run")
        #expect(second.code == 1)
        #expect(second.errors.contains("another pinproxy (process \(daemon.process.processIdentifier)) is running"))
        #expect(daemon.end(by: SIGINT) == 0)
        // Nothing is left that would keep the next proxy out.
        #expect(try Daemon(bed).end(by: SIGTERM) == 0)
    }

    @Test func saysWhyItCannotListen() throws {
        // A documentation address (RFC 5737), which no machine has.
        let bed = try CommandBed(configuration: "proxy: {listen: 192.0.2.1:1}\npins: null\n")
        let outcome = try bed.configured("run")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("Cannot assign requested address"))
    }

    @Test func refusesAKeyThatOthersCanRead() throws {
        let bed = try bed()
        #expect(try bed.configured("ca", "create").code == 0)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o644], ofItemAtPath: bed.path("state/pinproxy/authority.key"))
        let outcome = try bed.configured("run")
        #expect(outcome.code == 78)
        #expect(outcome.errors.contains("authority.key is open to other users (mode 644)"))
    }
}

/// The result of work on a background thread.
private final class Background<Value: Sendable>: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private var result: Result<Value, any Error>?

    func finish(_ result: Result<Value, any Error>) {
        self.result = result
        done.signal()
    }

    func get() throws -> Value {
        done.wait()
        return try #require(result).get()
    }
}

extension Thread {
    fileprivate static func inBackground<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) -> Background<Value> {
        let background = Background<Value>()
        detachNewThread { background.finish(Result { try work() }) }
        return background
    }
}
