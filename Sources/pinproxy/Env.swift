internal import ArgumentParser
internal import Configuration
internal import FoundationEssentials
internal import Glibc
internal import Proxy

struct Env: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the variables that make programs use the proxy and trust its authority.",
        discussion: """
            Prints export lines for a POSIX shell: the proxy's address in upper and lower case, and \
            a trust bundle (the system's roots and the proxy's authority) or the authority alone, \
            whichever each program wants. The bundle is kept in the state directory. Only pinproxy.yaml is \
            read, not the pin file. If that fails, the output is a line that makes the shell say so.

            Java programs are told about the proxy, but their trust is not touched: after \
            pinproxy ca install they trust the authority if Debian's ca-certificates-java is there; \
            otherwise import it with keytool.

            Examples:
              eval "$(pinproxy env)"
              pinproxy env >> ~/.profile
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        do {
            Standard.output(try options.clientEnvironment().exports)
        } catch {
            // Whoever evaluates the output has asked for a shell that uses the proxy, and must not go on without noticing.
            Standard.output(ClientEnvironment.failure)
            throw error
        }
    }
}

struct Exec: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run one command with the environment that env prints.",
        discussion: """
            The command takes the place of pinproxy, and its exit code is passed on. If it isn't \
            found the exit code is 127, if it can't be run 126, as with a shell.

            Examples:
              pinproxy exec -- curl https://example.org/
              pinproxy exec -- git clone https://example.org/project.git
            """)

    @OptionGroup var options: ConfigurationOptions

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
        for (name, value) in try options.clientEnvironment().variables { setenv(name, value, 1) }
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        arguments.append(nil)
        execvp(command[0], arguments)
        let reason = errno
        throw CommandFailure(
            code: reason == ENOENT || reason == ENOTDIR ? 127 : 126, message: "\(command[0]): \(systemReason(reason))")
    }
}

extension ConfigurationOptions {
    fileprivate func clientEnvironment() throws -> ClientEnvironment {
        let snapshot = try load(readsPins: false)
        let environment = ProcessInfo.processInfo.environment
        var directories = [StateFiles(directory: snapshot.stateDirectory)]
        // A service's directory is read-only for its users.
        if let own = StateDirectory.path(environment: environment), own != snapshot.stateDirectory {
            directories.append(StateFiles(directory: own))
        }
        let authority = absolute(snapshot.authority.certificatePath)
        let bundle = absolute(try TrustBundle.prepare(authority: authority, in: directories))
        let proxy = try ProxyURL(snapshot.proxy, inherited: ListenFile(in: snapshot.stateDirectory))
        if snapshot.proxy.users != nil {
            Standard.error(
                "pinproxy: the proxy asks for a name and a password (proxy.users): put them into the URLs, as in "
                    + "\(proxy.withCredentials)")
        }
        return ClientEnvironment(
            proxy: proxy, bundle: bundle, authority: authority,
            javaOptions: environment["JAVA_TOOL_OPTIONS"])
    }

    /// Programs run in other directories than this one.
    private func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
