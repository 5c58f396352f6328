internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyIsolation
internal import PinproxyLocalPeers

struct Exec: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "exec", _superCommandName: Pinproxy.name,
        abstract: "Run one command with the environment that env prints, and report the proxy's refusals.",
        discussion: """
            What the proxy refuses for the command is printed on standard error when the command ends, since most \
            programs print no more than "502". It also says if nothing came through the proxy at all. To identify the \
            command's requests, its proxy URL has a name and a password for this run; if a program doesn't send them, \
            the proxy checks whether the connection belongs to a process of the command.

            Signals, the terminal's keys (Ctrl-C, Ctrl-Z) and the exit code are passed on. If the command \
            isn't found the exit code is 127, if it can't be run 126, as with a shell.

            If the proxy requires a user name and a password (proxy.users), they are taken from your HTTPS_PROXY, and \
            the command doesn't see them. The proxy's own user and root need none.

            With --isolated the command has a private network, in which only the proxy can be reached. With \
            --transparent its connections to ports 443 and 80 are also redirected to the proxy, and names are \
            resolved: for programs without proxy support. Neither needs root if the kernel lets all users create user \
            namespaces.

            Examples:
              pinproxy exec -- curl https://example.org/
              pinproxy exec -- git clone https://example.org/project.git
              pinproxy exec --explain-refusals live -- ./long-running-server
              pinproxy exec --isolated -- npm ci
              pinproxy exec --transparent -- python3 script.py
              pinproxy exec --start -- make test
            """)

    enum Explanations: String, ExpressibleByArgument, CaseIterable {
        case end, live, off
    }

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: ArgumentHelp(
            "When to say what the proxy refused: once the command has ended, as it happens, or not at all.",
            discussion: "With off, the proxy URL has no name and no password for the run.",
            valueName: "when"))
    var explainRefusals = Explanations.end

    @Flag(
        help: ArgumentHelp(
            "Give it the proxy URL without a name and a password, for programs that can't handle them.",
            discussion: "Refusals are still reported. This is the default for lynx."))
    var plainURL = false

    @Flag(help: "Run it in a private network, in which only the proxy can be reached: nothing can bypass it.")
    var isolated = false

    @Flag(
        help: ArgumentHelp(
            "Like --isolated, but redirect its TCP connections to ports 443 and 80 to the proxy.",
            discussion:
                """
                For programs without proxy support. The host is read from the TLS hello or the request. The proxy's \
                resolver answers name queries.
                """
        ))
    var transparent = false

    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Show it the proxy's authority in the system's trust stores, or don't.",
            discussion: """
                By private mounts, which need no root if the kernel lets all users create user namespaces. Without \
                either option the command has them if possible; with --trust it doesn't run without them. Set-user-ID \
                programs (sudo) need --no-trust.
                """))
    var trust: Bool?

    @Flag(
        help: ArgumentHelp(
            "Start a proxy for the run if none is running, and stop it afterwards.",
            discussion:
                "On a port that the system chooses. Its warnings and errors go to exec.log in the state directory."))
    var start = false

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("What to run, with its arguments.", valueName: "command"), completion: .file())
    var command: [String] = []

    mutating func validate() throws {
        if command.first == "--" { command.removeFirst() }
        if command.first == "--help" || command.first == "-h" { throw CleanExit.helpRequest(self) }
        if command.isEmpty { throw ValidationError("A command to run is missing: pinproxy exec -- COMMAND") }
    }

    func run() throws {
        let snapshot = try options.load(readsPins: false)
        var needs: ProxySession.Needs = []
        if explainRefusals != .off { needs.insert(.refusals) }
        if transparent { needs.insert(.names) }
        if start { needs.insert(.life) }
        let files = StateFiles(directory: snapshot.stateDirectory)
        func session(for needs: ProxySession.Needs) -> ProxySession {
            ProxySession(
                files, given: ProxyURL.given(to: snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory)),
                needs: needs)
        }
        let (session, started) = start ? try starting(files) { session(for: needs) } : (session(for: needs), nil)
        let environment = try options.clientEnvironment(
            snapshot, session: session, isPlain: plainURL || ProxyURL.mustBePlain(for: command[0]))
        if transparent { try session.requireNames() }
        session.warn(
            of: command[0], using: environment.proxy, asksForUsers: snapshot.proxy.users != nil,
            isIsolated: reach != .everything)
        if reach == .everything { environment.warnIfBypassed() }
        for (name, value) in environment.variables { setenv(name, value, 1) }
        if explainRefusals != .off { Lineage.adoptOrphans() }
        let (child, door) = try startCommand(
            for: session, environment, files, SaidOnce(directories: options.directories(snapshot).map(\.own)))
        func told(_ refusal: RunRefusal) {
            if explainRefusals == .live { explain(refusal) }
        }
        let ending = child.wait(watching: session, door, told)
        if let door {
            door.drain()
            session.receive(from: door, told)
        }
        session.finish(told)
        started?.end()
        if explainRefusals != .off {
            let account = session.account
            let lines = words.lines(of: account, toldAlready: explainRefusals == .live)
            if !lines.isEmpty { FreshLine.begin() }
            for line in lines { Standard.error(line) }
        }
        ending.imitate()
    }

    /// Begins the run with the running proxy, or with one started for it. The running one may just be ending.
    private func starting(
        _ files: StateFiles, _ begin: () -> ProxySession
    ) throws -> (ProxySession, StartedProxy?) {
        var cause = ""
        for _ in 0..<3 {
            let started = RunningProxy.find(files) == nil ? try StartedProxy(options) : nil
            let session = begin()
            if session.hasBegun { return (session, started) }
            cause = session.whyNotBegun
        }
        throw CommandFailure("--start: the proxy that uses \(files.directory) doesn't accept the run: \(cause)")
    }

    private func startCommand(
        for session: ProxySession, _ environment: ClientEnvironment, _ files: StateFiles, _ said: SaidOnce
    ) throws -> (ChildCommand, ExecDoor?) {
        let commandTrust = CommandTrust(wish: trust.map { $0 ? .required : .refused } ?? .unasked, command: command[0])
        var surroundings = CommandSurroundings()
        surroundings.trust = commandTrust.stores(
            environment.trust, StartEnvironment.variables, settings: environment.systemSettings)
        surroundings.keepsRights = trust == nil
        surroundings.subordinates = commandTrust.subordinates
        let network = try network(environment.proxy)
        surroundings.network = network
        if surroundings.isEmpty { return (try ChildCommand.start(command), nil) }
        if let warning = commandTrust.warning { Standard.error(warning) }
        do {
            let (child, entered) = try ChildCommand.start(command, in: surroundings)
            if let cause = entered.untrusted { said.say(CommandTrust.missing(cause)) }
            if surroundings.trust != nil, trust == nil, network == nil { said.say(CommandTrust.given) }
            return (child, try network.map { try ExecDoor($0, entered.sockets, token: session.runToken, proxy: files) })
        } catch let refused as SurroundingsRefused {
            guard trust == nil, network == nil else {
                throw CommandFailure(code: 126, message: "\(command[0].printable) was not run: \(refused.cause)")
            }
            said.say(CommandTrust.missing(refused.cause))
            return (try ChildCommand.start(command), nil)
        }
    }

    private func network(_ proxy: ProxyURL) throws -> IsolatedNetwork? {
        guard reach != .everything else { return nil }
        guard let ip = IPAddress(proxy.host) else { throw CommandFailure("\(proxy.host) is not an address") }
        return IsolatedNetwork(proxy: SocketAddress(ip: ip, port: proxy.port), isTransparent: transparent)
    }

    private var reach: RefusalWords.Reach { transparent ? .nothingUnchecked : isolated ? .nothing : .everything }

    private func explain(_ refusal: RunRefusal) {
        FreshLine.begin()
        Standard.error(words.line(of: refusal, count: 1))
    }

    private var words: RefusalWords {
        var given: [String] = []
        if let config = options.config { given += ["--config", config] }
        if let directory = options.stateDirectory { given += ["--state-directory", directory] }
        return RefusalWords(command: command[0], options: given, reach: reach)
    }
}
