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
            let snapshot = try options.load(readsPins: false)
            let environment = try options.clientEnvironment(snapshot)
            if snapshot.proxy.users != nil, environment.proxy.credentials == nil {
                Standard.error(
                    "pinproxy: the proxy asks for a name and a password (proxy.users): put them into the URLs, as in "
                        + "\(environment.proxy.withCredentials)")
            }
            Standard.output(environment.exports)
        } catch {
            // Whoever evaluates the output has asked for a shell that uses the proxy, and must not go on without noticing.
            Standard.output(ClientEnvironment.failure)
            throw error
        }
    }
}

extension ConfigurationOptions {
    /// - Parameter session: the run that the variables are for; nil: they are for any program.
    func clientEnvironment(_ snapshot: Snapshot, session: ProxySession? = nil) throws -> ClientEnvironment {
        let environment = ProcessInfo.processInfo.environment
        var directories = [StateFiles(directory: snapshot.stateDirectory)]
        // A service's directory is read-only for its users.
        if let own = StateDirectory.path(environment: environment), own != snapshot.stateDirectory {
            directories.append(StateFiles(directory: own))
        }
        let authority = absolute(snapshot.authority.certificatePath)
        let bundle = absolute(try TrustBundle.prepare(authority: authority, in: directories))
        let inherited = ListenFile(in: snapshot.stateDirectory)
        var proxy = try ProxyURL(snapshot.proxy, inherited: inherited, running: session?.listen ?? [])
        proxy.credentials =
            session?.token.map { "\(RunToken.user):\($0.text)" } ?? ProxyURL.given(to: snapshot.proxy, inherited: inherited)
        return ClientEnvironment(
            proxy: proxy, bundle: bundle, authority: authority,
            javaOptions: environment["JAVA_TOOL_OPTIONS"])
    }

    /// Programs run in other directories than this one.
    private func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
    }
}
