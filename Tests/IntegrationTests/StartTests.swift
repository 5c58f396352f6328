import Foundation
import Testing

/// A start takes the state directory as an earlier one left it, however that one ended.
@Suite(.timeLimit(.minutes(5)))
struct StartTests {
    private static let certificate = "authority.pem"
    private static let key = "authority.key"

    private static func state(_ bed: TestBed, _ name: String = "") -> String {
        bed.path("proxy/state/pinproxy") + (name.isEmpty ? "" : "/" + name)
    }

    private static func names(_ bed: TestBed) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: state(bed)).sorted()
    }

    /// Runs the proxy where files can't grow beyond `bytes`: the write that would pass them ends the process
    /// (SIGXFSZ), or fails where the signal is ignored, as it does on a full disk.
    private func start(_ bed: TestBed, fileSize bytes: Int, signalIsIgnored: Bool) async throws -> Run {
        try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
        let trap = signalIsIgnored ? "trap '' XFSZ; " : ""
        return try await bed.run(
            [
                "/bin/sh", "-c", "\(trap)ulimit -c 0; exec prlimit --fsize=\(bytes) -- \"$0\" \"$@\"",
                ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml"),
            ], environment: ProxyProcess.environment(in: bed))
    }

    /// A client that trusts the authority's file gets through TLS: certificate and key belong together.
    private func expectPair(_ bed: TestBed) async throws {
        let text = try await bed.run([
            "/bin/sh", "-c",
            "openssl x509 -in \"$0\" -noout -pubkey; openssl pkey -in \"$1\" -pubout",
            Self.state(bed, Self.certificate), Self.state(bed, Self.key),
        ]).output.components(separatedBy: "-----BEGIN PUBLIC KEY-----").dropFirst()
        #expect(text.count == 2 && Set(text.map { $0.trimmingCharacters(in: .newlines) }).count == 1, "\(text)")
    }

    /// Killed while it writes the key (100 bytes in), or the certificate (after a key of some 240).
    @Test(arguments: [(100, false), (300, true)])
    func aStartThatWasKilledWhileItWroteTheAuthorityIsMadeGood(_ bytes: Int, _ keyIsThere: Bool) async throws {
        try await withTestBed { bed in
            let killed = try await start(bed, fileSize: bytes, signalIsIgnored: false)
            #expect(killed.ending == .signalled(SIGXFSZ), "\(killed)")
            let left = try Self.names(bed)
            #expect(left.contains(Self.key) == keyIsThere && !left.contains(Self.certificate), "\(left)")
            #expect(left.contains { $0.hasSuffix(".new") }, "\(left)")

            let proxy = try await ProxyProcess(in: bed, trust: nil)
            try await expectPair(bed)
            #expect(try Self.names(bed).filter { $0.hasSuffix(".new") } == [])
            let said = try await proxy.events.first("authority.created")
            #expect(said["level"] == (keyIsThere ? "warning" : "notice"), "\(said)")
            #expect(said["cause"]?.contains("without its certificate") == (keyIsThere ? true : nil), "\(said)")
        }
    }

    @Test(arguments: [(100, false), (300, true)])
    func aFullDiskThatHasRoomAgainIsNoHindrance(_ bytes: Int, _ keyIsThere: Bool) async throws {
        try await withTestBed { bed in
            let failed = try await start(bed, fileSize: bytes, signalIsIgnored: true)
            #expect(failed.ending == .exited(1), "\(failed)")
            #expect(failed.errors.contains(keyIsThere ? Self.certificate : Self.key), "\(failed)")
            #expect(failed.errors.contains("can't be written: File too large"), "\(failed)")
            let left = try Self.names(bed)
            #expect(left.contains(Self.key) == keyIsThere && !left.contains { $0.hasSuffix(".new") }, "\(left)")

            _ = try await ProxyProcess(in: bed, trust: nil)
            try await expectPair(bed)
        }
    }

    @Test func aCertificateWithoutItsKeyIsAnErrorThatSaysWhatToDo() async throws {
        try await withTestBed { bed in
            let first = try await ProxyProcess(in: bed, trust: nil)
            await first.process.stop()
            try FileManager.default.removeItem(atPath: Self.state(bed, Self.key))
            let pem = try Data(contentsOf: URL(fileURLWithPath: first.authority))
            let run = try await bed.run(
                [ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(run.ending == .exited(78), "\(run)")
            #expect(run.errors.contains("authority.pem is there, but its key"), "\(run)")
            #expect(run.errors.contains("restore") && run.errors.contains("remove"), "\(run)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: first.authority)) == pem)
        }
    }

    /// Removes only the proxy's temporary files that a killed writer left, and follows no links.
    @Test func whatKilledWritersLeftIsRemovedAndNothingElse() async throws {
        try await withTestBed { bed in
            // Numbers beyond any process's (PID_MAX_LIMIT is 2^22), and one of a process that lives.
            let dead =
                ["pins.json.5000001.new", "authority.key.5000002.new"]
                + ["ca-bundle.pem", "java-0123456789ab.p12", "wgetrc", "apt.conf", "hgrc", "php/pinproxy.ini"]
                .map { "trust/0123456789abcdef/\($0).5000003.new" }
            let kept = [
                "pins.json.\(getpid()).new", "notes.5000004.new", "pins.json.new", "pins.json.5000005.new.txt",
                "pins.json.x5.new", "trust/0123456789abcdef/notes.5000009.new",
                "trust/0123456789abcdef/wgetrc.\(getpid()).new",
                "trust/0123456789abcdef/java-notes.p12.5000010.new",
            ]
            for name in dead + kept { try bed.file("proxy/state/pinproxy/\(name)", "half") }
            try bed.file("elsewhere", "whole")
            let link = Self.state(bed, "chains.json.5000006.new")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: bed.path("elsewhere"))
            try FileManager.default.createDirectory(
                atPath: Self.state(bed, "learn.json.5000007.new"), withIntermediateDirectories: true)
            try bed.file("proxy/pins.json.5000008.new", "not in the state directory")

            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let names = try Set(FileManager.default.subpathsOfDirectory(atPath: Self.state(bed, "")))
            #expect(names.intersection(dead) == [])
            #expect(names.isSuperset(of: kept + ["chains.json.5000006.new", "learn.json.5000007.new"]), "\(names)")
            #expect(try bed.contents("elsewhere") == "whole")
            #expect(FileManager.default.fileExists(atPath: bed.path("proxy/pins.json.5000008.new")))
            let said = try await proxy.events.first("state.leftovers")
            for name in dead {
                #expect(said["files"]?.contains((name as NSString).lastPathComponent) == true, "\(said)")
            }
        }
    }

    /// The first file that a process opens gets the lowest free number: what is written to standard error then
    /// goes into that file.
    @Test(arguments: ["2>&-", "0<&- 1>&- 2>&-", "0<&-"])
    func descriptorsThatAreClosedAtTheStartAreNobodysFiles(_ closed: String) async throws {
        try await withTestBed { bed in
            try ProxyProcess.write(to: bed, folder: "proxy", pins: "hosts: []\n", trust: nil)
            let arguments = [ProxyProcess.executable, "run", "--config", bed.path("proxy/pinproxy.yaml")]
            let process = try await bed.start(
                ["/bin/sh", "-c", "exec \"$0\" \"$@\" \(closed)"] + arguments,
                environment: ProxyProcess.environment(in: bed))
            let reload = [ProxyProcess.executable, "reload", "--config", bed.path("proxy/pinproxy.yaml")]
            try await eventually("the proxy to answer") {
                try await bed.run(reload, environment: ProxyProcess.environment(in: bed)).succeeded
            }
            // What the reload logged would be here.
            #expect(
                try String(contentsOfFile: Self.state(bed, "pinproxy.pid"), encoding: .utf8)
                    == "\(process.identifier)\n")
            for number in 0...2 where closed.contains("\(number)") {
                let link = "/proc/\(process.identifier)/fd/\(number)"
                #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/dev/null")
            }
            process.send(signal: SIGTERM)
            #expect(try await process.ending() == .exited(0))
        }
    }

    /// `workers: auto`: one for each processor that the proxy may use, not for each of the machine.
    @Test(arguments: [
        [],
        [
            "sh", "-c",
            "exec taskset --cpu-list $(awk '/^Cpus_allowed_list/ { print $2 + 0 }' /proc/self/status) \"$@\"", "sh",
        ],
    ])
    func thereAreAsManyWorkersAsProcessorsToRunOn(_ launcher: [String]) async throws {
        try await withTestBed { bed in
            let processors = launcher.isEmpty ? try await bed.run(["nproc"]).output : "1"
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["proxy": ["workers: auto"]], launcher: launcher)
            let ready = try await proxy.events.first("proxy.ready")
            #expect(ready["workers"] == processors.trimmingCharacters(in: .whitespacesAndNewlines), "\(ready)")
        }
    }
}
