internal import ArgumentParser
internal import Configuration
internal import FoundationEssentials
internal import Glibc
internal import Proxy

struct Exec: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run one command with the environment that env prints, and say what the proxy refused for it.",
        discussion: """
            What the proxy refuses for the command is printed on standard error when the command ends, since most \
            programs print no more than "502". So is it when nothing came through the proxy at all. To know the command's \
            requests, the URL of the proxy that it gets has a name and a password of this one run.

            Signals, the terminal's keys (Ctrl-C, Ctrl-Z) and the exit code are passed on. If the command \
            isn't found the exit code is 127, if it can't be run 126, as with a shell.

            If the proxy asks for a name and a password (proxy.users), they are taken from HTTPS_PROXY as it was \
            before, and the command doesn't see them. The proxy's own user and root need none.

            Examples:
              pinproxy exec -- curl https://example.org/
              pinproxy exec -- git clone https://example.org/project.git
              pinproxy exec --explain-refusals live -- ./long-running-server
            """)

    enum Explanations: String, ExpressibleByArgument, CaseIterable {
        case end, live, off
    }

    @OptionGroup var options: ConfigurationOptions

    @Option(
        help: ArgumentHelp(
            "When to say what the proxy refused: once the command has ended, as it happens, or not at all.",
            discussion: "With off the proxy's URL is the plain one, for programs that can't have a name and a password in it.",
            valueName: "when"))
    var explainRefusals = Explanations.end

    @Argument(
        parsing: .captureForPassthrough,
        help: ArgumentHelp("What to run, with its arguments.", valueName: "command"))
    var command: [String] = []

    mutating func validate() throws {
        if command.first == "--" { command.removeFirst() }
        if command.first == "--help" || command.first == "-h" { throw CleanExit.helpRequest(self) }
        if command.isEmpty { throw ValidationError("A command to run is missing: pinproxy exec -- COMMAND") }
    }

    func run() throws {
        let snapshot = try options.load(readsPins: false)
        let session = ProxySession(
            StateFiles(directory: snapshot.stateDirectory),
            given: ProxyURL.given(to: snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory)),
            explains: explainRefusals != .off)
        let environment = try options.clientEnvironment(snapshot, session: session)
        session.warn(of: command[0], using: environment.proxy, asksForUsers: snapshot.proxy.users != nil)
        environment.warnIfBypassed()
        for (name, value) in environment.variables { setenv(name, value, 1) }
        let child = try ChildCommand.start(command)
        let ending = child.wait(watching: session) { refusal in
            if explainRefusals == .live { explain(refusal) }
        }
        session.finish { refusal in
            if explainRefusals == .live { explain(refusal) }
        }
        if explainRefusals != .off {
            let account = session.account
            for line in words.lines(of: account, toldAlready: explainRefusals == .live) { Standard.error(line) }
        }
        ending.imitate()
    }

    private func explain(_ refusal: RunRefusal) {
        Standard.error(words.line(of: refusal, count: 1))
    }

    private var words: RefusalWords {
        var given: [String] = []
        if let config = options.config { given += ["--config", config] }
        if let directory = options.stateDirectory { given += ["--state-directory", directory] }
        return RefusalWords(command: command[0], options: given)
    }
}
