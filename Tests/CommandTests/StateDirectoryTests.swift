import Foundation
import PinproxyTLS
import Testing

/// What root does if the state directory belongs to a service, and what anyone does if another user has prepared
/// theirs.
@Suite(.serialized) struct StateDirectoryTests {
    private static let isRoot = geteuid() == 0
    private static let nobody: uid_t = 65534

    private func owner(_ path: String) -> uid_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_uid : nil
    }

    /// A bed with an authority in another user's state directory.
    private func serviceBed() throws -> (bed: CommandBed, options: [String]) {
        let bed = try CommandBed(configuration: "proxy: {listen: 127.0.0.1:1, workers: 1}\npins: null\n")
        let state = bed.path("service")
        try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
        #expect(chown(state, Self.nobody, Self.nobody) == 0)
        let options = ["--config", bed.path("pinproxy.yaml"), "--state-directory", state]
        let created = try run(bed, ["ca", "create"] + options)
        #expect(created.code == 0, "\(created)")
        return (bed, options)
    }

    private func run(_ bed: CommandBed, _ arguments: [String]) throws -> CommandBed.Outcome {
        try CommandBed.run([CommandBed.executable] + arguments, in: bed.directory, environment: bed.environment)
    }

    // MARK: Root and a service

    @Test(.enabled(if: isRoot, "needs root, to give files away")) func whatRootMakesForAServiceIsTheServices() throws {
        let (bed, _) = try serviceBed()
        for name in ["authority.pem", "authority.key"] { #expect(owner(bed.path("service/" + name)) == Self.nobody) }
        let mode = try FileManager.default.attributesOfItem(atPath: bed.path("service/authority.key"))[
            .posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: bed.path("service")).sorted() == [
                "authority.key", "authority.pem",
            ])
    }

    /// A rotation by root leaves nothing that the service can't read.
    @Test(.enabled(if: isRoot, "needs root, to give files away")) func aRotationByRootIsTheServices() throws {
        let (bed, options) = try serviceBed()
        func names() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: bed.path("service")).sorted()
        }
        #expect(try run(bed, ["ca", "rotate"] + options).code == 0)
        #expect(try names() == ["authority.key", "authority.next.key", "authority.next.pem", "authority.pem"])
        for name in try names() { #expect(owner(bed.path("service/" + name)) == Self.nobody, "\(name)") }
        let activated = try run(bed, ["ca", "rotate", "--activate"] + options)
        #expect(activated.code == 0, "\(activated)")
        #expect(try names() == ["authority.key", "authority.pem", "authority.previous.pem"])
        for name in try names() { #expect(owner(bed.path("service/" + name)) == Self.nobody, "\(name)") }
        let mode = try FileManager.default.attributesOfItem(atPath: bed.path("service/authority.key"))[
            .posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(try run(bed, ["ca", "rotate", "--finish"] + options).code == 0)
        #expect(try names() == ["authority.key", "authority.pem"])
    }

    /// Root's commands accept files private to the service's user, or to root. They accept no other user's, and no open
    /// ones.
    @Test(
        .enabled(if: isRoot, "needs root, to give files away"),
        arguments: [(uid_t(65534), 0o600, true), (0, 0o600, true), (12345, 0o600, false), (65534, 0o640, false)])
    func aTokenOfTheServiceIsNoHindranceToRoot(_ user: uid_t, _ mode: Int, _ isAccepted: Bool) throws {
        let (bed, options) = try serviceBed()
        try bed.write("token", "0123456789abcdef0123456789abcdef\n")
        #expect(chown(bed.path("token"), user, user) == 0 && chmod(bed.path("token"), mode_t(mode)) == 0)
        try bed.write(
            "pinproxy.yaml",
            "proxy: {listen: 127.0.0.1:1}\nadmin: {listen: 127.0.0.1:2, token_file: token}\npins: null\n")
        for command in [["check"], ["lint"], ["explain", "a.test"]] {
            let outcome = try run(bed, command + options)
            #expect((outcome.code != 78) == isAccepted, "\(command): \(outcome)")
        }
        // The proxy reads private files itself: as root it accepts only root's.
        guard user != 0 else { return }
        let served = try run(bed, ["run", "--config", bed.path("pinproxy.yaml"), "--state-directory", bed.path("own")])
        #expect(served.code == 78, "\(served)")
    }

    /// The service has replaced every written file with a link.
    @Test(.enabled(if: isRoot, "needs root, to give files away")) func rootWritesNothingWhereAServiceLeads() throws {
        let (bed, options) = try serviceBed()
        let victim = bed.path("victim")
        try FileManager.default.createDirectory(atPath: victim, withIntermediateDirectories: true)
        try bed.write("victim/kept", "secret")
        for name in ["trust", "chains.json", "exec.log", "pinproxy.pid", "pinproxy.lock"] {
            let target = name == "trust" ? victim : victim + "/" + (name == "exec.log" ? "kept" : name)
            try FileManager.default.createSymbolicLink(atPath: bed.path("service/" + name), withDestinationPath: target)
            #expect(lchown(bed.path("service/" + name), Self.nobody, Self.nobody) == 0)
        }
        let printed = try run(bed, ["env"] + options)
        #expect(
            printed.code == 0 && printed.output.contains("SSL_CERT_FILE='\(bed.path("state/pinproxy/trust/"))"),
            "\(printed)")
        for command in [["status"], ["learn", "--stop"], ["learn", "--forget"], ["tasks"], ["lint"]] {
            _ = try run(bed, command + options)
        }
        for command in [["exec", "--start"], ["run"]] {
            let refused = try run(bed, command + options + (command[0] == "exec" ? ["--", "true"] : []))
            #expect(refused.code == 78, "\(refused)")
            #expect(
                refused.errors.contains("\(bed.path("service")) belongs to user 65534, and this runs as user 0"),
                "\(refused)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: victim) == ["kept"])
        #expect(try bed.read("victim/kept") == "secret")
    }

    @Test(.enabled(if: isRoot, "needs root, to give files away")) func whatRootLearnsIsTheServices() throws {
        let (bed, options) = try serviceBed()
        try bed.write("service/chains.json", "{\"hosts\": {}, \"learnsUntil\": 4102444800}")
        #expect(chown(bed.path("service/chains.json"), Self.nobody, Self.nobody) == 0)
        let stopped = try run(bed, ["learn", "--stop"] + options)
        #expect(stopped.code == 0, "\(stopped)")
        #expect(try !bed.read("service/chains.json").contains("4102444800"))
        #expect(owner(bed.path("service/chains.json")) == Self.nobody)
    }

    // MARK: Files that are not what they seem

    /// A pipe and a link are refused, and the command doesn't block.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: ["authority.pem", "pinproxy.pid", "pins.json", "chains.json", "listen", "control.sock"])
    func aPipeIsNotWaitedFor(_ name: String) throws {
        let bed = try CommandBed(configuration: "proxy: {listen: systemd}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let path = bed.path("state/pinproxy/" + name)
        unlink(path)
        #expect(mkfifo(path, 0o644) == 0)
        for command in [
            ["ca", "show"], ["env"], ["status"], ["learn"], ["reload"], ["exec", "--explain-refusals=off"],
        ] {
            let options = ["--config", bed.path("pinproxy.yaml")]
            _ = try run(bed, command + options + (command[0] == "exec" ? ["--", "true"] : []))
        }
    }

    /// A shell runs what follows a certificate as a script, and so may the programs that get the file.
    @Test func nothingButCertificatesIsPassedOn() throws {
        let bed = try CommandBed()
        #expect(try bed.configured("ca", "create").code == 0)
        let pem = try bed.read("state/pinproxy/authority.pem")
        let script = "touch \(bed.path("led"))\n"
        try bed.write("state/pinproxy/authority.pem", script + pem + script)
        #expect(try bed.configured("env").code == 0)
        let folder = try #require(
            try FileManager.default.contentsOfDirectory(atPath: bed.path("state/pinproxy/trust")).first)
        let bundle = try bed.read("state/pinproxy/trust/\(folder)/ca-bundle.pem")
        #expect(bundle.hasSuffix(pem) && !bundle.contains("touch"))
        let outside = bundle.split(separator: "\n").filter { $0.contains(" ") && !$0.hasPrefix("-----") }
        #expect(outside.isEmpty, "\(outside.prefix(3))")
        #expect(try Certificate.all(inPEM: Array(bundle.utf8)).count > 1)
        #expect(try bed.configured("ca", "show", rest: ["--pem"]).output == pem)
    }

    @Test(arguments: [("666", 1), ("777", 78)])
    func whatOthersCanChangeIsRefused(_ mode: String, _ code: Int32) throws {
        let bed = try CommandBed(configuration: "proxy: {listen: 192.0.2.1:1}\npins: null\n")
        #expect(try bed.configured("ca", "create").code == 0)
        let isDirectory = code == 78
        #expect(
            chmod(
                bed.path(isDirectory ? "state/pinproxy" : "state/pinproxy/authority.pem"), isDirectory ? 0o777 : 0o666)
                == 0)
        let shown = try bed.configured("ca", "show")
        #expect(shown.code == 1 && shown.errors.contains("can be written by"), "\(shown)")
        let run = try bed.configured("run")
        #expect(run.code == 78 && run.errors.contains("can be written by") && run.errors.contains(mode), "\(run)")
    }
}
