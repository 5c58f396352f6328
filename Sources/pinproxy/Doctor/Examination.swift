internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyIsolation

/// Tries programs through the running proxy, against the hosts that it answers for itself.
struct Examination {
    /// For a program's version, which some print slowly.
    private static let shortPatience: Duration = .seconds(15)

    let options: ConfigurationOptions
    let snapshot: Snapshot
    /// For one call of a program.
    private let patience: Duration
    /// Holds everything written; removed afterwards.
    private let scratch: ScratchDirectory
    private let directory: String
    private let home: HomeView
    private let own: [String: String]
    private let interrupts = Interrupts()

    init(_ options: ConfigurationOptions, _ snapshot: Snapshot, patience: Duration) throws {
        self.patience = patience
        self.options = options
        self.snapshot = snapshot
        own = StartEnvironment.variables
        scratch = try ScratchDirectory(for: "doctor")
        directory = scratch.path
        home = try HomeView(of: own["HOME"], at: directory + "/home")
    }

    func end() { scratch.remove() }

    /// - Returns: its version; nil if it isn't installed.
    func version(of program: ClientProgram) throws -> String? {
        let ending = try script(program.version, own, for: Self.shortPatience)
        guard ending.succeeded else { return nil }
        return ending.output.firstMatch(of: /\d+(\.\d+)+/).map { String($0.output.0) } ?? ""
    }

    func report(on program: ClientProgram, version: String) throws -> ClientReport {
        let (right, wrong) = try both(program.call, of: program)
        var (helped, transparent): (Bool?, Bool?)
        if !right.succeeded {
            if let call = program.remedy?.call {
                let (right, wrong) = try both(call, of: program)
                helped = right.succeeded && !wrong.succeeded
            }
            // A program that used the proxy failed for another reason.
            if right.requests == 0 { transparent = try worksTransparently(program) }
        }
        let settings = right.succeeded && !wrong.succeeded ? [] : try settings(of: program)
        return ClientReport(
            program, version: version, right: right, wrong: wrong, helped: helped, transparent: transparent,
            settings: settings)
    }

    /// Nil: a command can't have a private network here.
    private func worksTransparently(_ program: ClientProgram) throws -> Bool? {
        do {
            let right = try call(program.call, of: program, for: .right, isTransparent: true)
            guard right.succeeded else { return false }
            return try !call(program.call, of: program, for: .wrong, isTransparent: true).succeeded
        } catch is SurroundingsRefused {
            return nil
        }
    }

    /// The user's settings, and their places.
    private func settings(of program: ClientProgram) throws -> [String] {
        guard let find = program.settings else { return [] }
        let output = try script(find, own, for: Self.shortPatience).output
        return output.split(whereSeparator: \.isNewline).prefix(Self.mostSettings).map { line in
            String(line).replacing(home.path, with: own["HOME"] ?? "").printable(longest: 200)
        }
    }

    private static let mostSettings = 8

    private func both(_ call: String, of program: ClientProgram) throws -> (right: ClientCall, wrong: ClientCall) {
        let right = try self.call(call, of: program, for: .right)
        // A program that sends nothing within TLS to one host lacks proxy or trust: the other host gets nothing either.
        if !right.succeeded, right.inside == 0 { return (right, right) }
        return (right, try self.call(call, of: program, for: .wrong))
    }

    private func call(
        _ script: String, of program: ClientProgram, for host: TestHost, isTransparent: Bool = false
    ) throws -> ClientCall {
        let given = ProxyURL.given(to: snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory))
        let files = StateFiles(directory: snapshot.stateDirectory)
        let session = ProxySession(files, given: given, needs: isTransparent ? [.refusals, .names] : .refusals)
        let client = try options.clientEnvironment(
            snapshot, session: session, isPlain: ProxyURL.mustBePlain(for: program.name))
        var surroundings = CommandSurroundings()
        surroundings.keepsRights = true
        surroundings.trust = CommandTrust(wish: .unasked, command: program.name).stores(
            client.trust, own, settings: client.systemSettings)
        if isTransparent, let ip = IPAddress(client.proxy.host) {
            surroundings.network = IsolatedNetwork(
                proxy: SocketAddress(ip: ip, port: client.proxy.port), isTransparent: true)
        }
        var environment = own
        environment["SITE"] = "https://\(host.rawValue)"
        environment["HOST"] = host.rawValue
        environment["PORT"] = "443"
        for (name, value) in client.variables { environment[name] = value }
        let ending = try self.script(script, environment, for: patience, as: session, in: surroundings, proxy: files)
        session.finish { _ in }
        let account = session.account
        let late = ending.status == nil ? "it hadn't ended after \(patience)\n" : ""
        return ClientCall(
            succeeded: ending.succeeded, output: ending.output + late, requests: account.requests,
            inside: account.inside, isRefused: !account.refused.isEmpty)
    }

    private func script(
        _ text: String, _ variables: [String: String], for limit: Duration, as session: ProxySession? = nil,
        in surroundings: CommandSurroundings = CommandSurroundings(), proxy files: StateFiles? = nil
    ) throws -> BoundedProcess.Ending {
        let place = "\(directory)/call"
        guard mkdir(place, 0o700) == 0 else { throw CommandFailure("\(place): \(systemReason())") }
        defer { try? FileManager.default.removeItem(atPath: place) }
        var environment = variables.merging(ClientProgram.environment(in: place)) { $1 }
        environment["HOME"] = home.path
        var shell = BoundedProcess(
            arguments: ["/bin/sh", "-ec", "cd \"$0\"; \(text)", place], environment: environment,
            interrupts: interrupts, surroundings: surroundings)
        var door: ExecDoor?
        // Its thread has ended before the next process is forked.
        defer { door?.drain() }
        shell.entered = { sockets in
            if let network = surroundings.network, let files {
                door = try ExecDoor(network, sockets, token: session?.runToken, proxy: files)
            }
        }
        do {
            return try shell.run(for: limit, as: session)
        } catch let error as SystemError {
            throw CommandFailure("/bin/sh can't be run: \(error)")
        }
    }
}

/// A temporary home directory for programs under test. It links to the user's files, so that their settings apply. New
/// files, even in directories of settings, are removed with it.
struct HomeView {
    private static let shared: Set<String> = [".config", ".local", ".local/share", ".local/state"]
    /// Directories without settings.
    private static let leftOut: Set<String> = [".cache"]

    let path: String

    /// - Parameter home: nil: makes an empty one.
    init(of home: String?, at path: String) throws {
        self.path = path
        guard mkdir(path, 0o700) == 0 else { throw CommandFailure("\(path): \(systemReason())") }
        if let home { link("", of: home) }
    }

    /// Creates directories with a leading dot and those in ``shared``, and links all else.
    private func link(_ folder: String, of home: String) {
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: "\(home)/\(folder)")) ?? [] {
            let name = folder.isEmpty ? entry : "\(folder)/\(entry)"
            if Self.leftOut.contains(name) { continue }
            let isOfSettings = folder.isEmpty ? entry.hasPrefix(".") : Self.shared.contains(folder)
            if isOfSettings, Self.isDirectory("\(home)/\(name)"), mkdir("\(path)/\(name)", 0o700) == 0 {
                link(name, of: home)
            } else {
                symlink("\(home)/\(name)", "\(path)/\(name)")
            }
        }
    }

    private static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
