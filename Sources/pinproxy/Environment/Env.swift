internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxySecurity

struct Env: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env", _superCommandName: Pinproxy.name,
        abstract: "Print the variables that make programs use the proxy and trust its authority.",
        discussion: """
            Prints export lines for a POSIX shell: the proxy's address in upper and lower case, and a trust bundle \
            (the system's roots and the proxy's authority) or the authority alone, whichever each program wants. Java, \
            wget, apt, Mercurial and PHP each get their own file in the state directory, which includes what you have \
            configured. What you have in NO_PROXY and JAVA_TOOL_OPTIONS is kept. Only pinproxy.yaml is read, not the \
            pin file. If that fails, the output is a line that makes the shell say so.

            Examples:
              eval "$(pinproxy env)"
              pinproxy env --shell fish | source
              eval "$(pinproxy env --unset)"
              pinproxy env >> ~/.profile
            """)

    @OptionGroup var options: ConfigurationOptions
    @Option(help: ArgumentHelp("For which shell: sh (any POSIX shell), fish, csh or powershell.", valueName: "name"))
    var shell = ShellSyntax.sh
    @Flag(help: "Print lines that remove the variables again, and restore the values they included.") var unset = false

    func run() throws {
        if unset {
            return Standard.output(ClientEnvironment.removal(from: StartEnvironment.variables, in: shell))
        }
        do {
            let snapshot = try options.load(readsPins: false)
            let environment = try options.clientEnvironment(snapshot)
            if snapshot.proxy.users != nil {
                Standard.error(
                    "pinproxy: the proxy requires a user name and a password (proxy.users): add them to the URLs, "
                        + "as in \(environment.proxy.withCredentials)")
            }
            environment.warnIfBypassed()
            Standard.output(environment.exports(in: shell))
        } catch {
            // The caller evaluates the output to make its shell use the proxy, and must notice the failure.
            Standard.output(shell.failure)
            throw error
        }
    }
}

extension ConfigurationOptions {
    /// - Parameter session: the run that they are for. With `isPlain` the proxy's URL holds no name and no password.
    func clientEnvironment(
        _ snapshot: Snapshot, session: ProxySession? = nil, isPlain: Bool = false
    ) throws -> ClientEnvironment {
        let environment = StartEnvironment.variables
        let directories = directories(snapshot)
        let settings = snapshot.authority
        let authority = AuthorityFiles(
            certificate: absolute(settings.certificatePath), key: absolute(settings.privateKeyPath),
            state: absolute(snapshot.stateDirectory), permitting: settings.permitted)
        let trust = try TrustFiles.prepare(authority: authority, in: directories, environment: environment)
        let inherited = ListenFile(in: snapshot.stateDirectory)
        var proxy = try ProxyURL(snapshot.proxy, inherited: inherited, running: session?.listen ?? [])
        // Printed output may be kept in a file, so it holds no password.
        if let session, !isPlain {
            proxy.credentials =
                session.token.map { "\(RunToken.user):\($0.text)" }
                ?? ProxyURL.given(to: snapshot.proxy, inherited: inherited)
        }
        return ClientEnvironment(proxy: proxy, trust: trust, present: environment)
    }

    /// The directories for files of this user's commands. A service's directory is read-only for its users: the last
    /// directory is their own.
    func directories(_ snapshot: Snapshot) -> [StateFiles] {
        let own = StateDirectory.path(environment: StartEnvironment.variables)
        let others = own.map { $0 == snapshot.stateDirectory ? [] : [$0] } ?? []
        return ([snapshot.stateDirectory] + others).map { StateFiles(directory: absolute($0)) }
    }

    /// An absolute path: programs may run in other directories.
    private func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
