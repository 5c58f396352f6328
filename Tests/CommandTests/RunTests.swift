import Foundation
import Testing

/// The daemon's life as the command line sees it.
@Suite struct RunTests {
    /// A proxy on a port of the system's choice, ready.
    private final class Daemon {
        let process = Process()
        private let log = Pipe()

        init(_ bed: CommandBed) throws {
            process.executableURL = URL(fileURLWithPath: CommandBed.executable)
            process.arguments = ["run", "--config", bed.path("pinproxy.yaml")]
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
            #expect(try bed.configured("reload") == .init(code: 0, output: "reloaded\n", errors: ""))
        }
        try bed.write("pins.yaml", "hosts: [{match: a.test, pinnig: none}]\n")
        let refused = try bed.configured("reload")
        #expect(refused.code == 78)
        #expect(refused.output == "")
        #expect(
            refused.errors == """
                \(bed.path("pins.yaml")):1:25: error: unknown key "pinnig" in "hosts"; did you mean "pinning"?
                pinproxy: the proxy has refused the new configuration and goes on with the one that it has

                """)
        try bed.write("pins.yaml", "hosts: [{match: a.test, pinning: none}]\n")
        #expect(try bed.configured("reload").code == 0)
        #expect(daemon.end(by: SIGTERM) == 0)
        #expect(try bed.configured("reload").code == 1)
    }

    @Test func refusesASecondOneInTheSameStateDirectory() throws {
        let bed = try bed()
        let daemon = try Daemon(bed)
        let second = try bed.configured("run")
        #expect(second.code == 1)
        #expect(second.errors.contains("another pinproxy (process \(daemon.process.processIdentifier)) is running"))
        #expect(daemon.end(by: SIGINT) == 0)
        // Nothing is left that would keep the next one out.
        #expect(try Daemon(bed).end(by: SIGTERM) == 0)
    }

    @Test func saysWhyItCannotListen() throws {
        // An address of the documentation (RFC 5737), which no machine has.
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
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("authority.key is open to other users (mode 644)"))
    }
}
