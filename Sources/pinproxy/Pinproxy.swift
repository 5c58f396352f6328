// pinproxy: the command line. Results go to standard output, problems to standard error.

internal import ArgumentParser
internal import Glibc
internal import PinproxyDaemon
internal import PinproxyDecoding
internal import PinproxySerialization

@main
enum Main {
    static func main() {
        StandardDescriptors.ensureOpen()
        // Before anything else of this program is needed.
        let arguments = CommandLine.arguments
        if arguments.dropFirst().first == DecoderProgram.command { DecoderProgram.run(Array(arguments.dropFirst(2))) }
        do {
            var command = try command()
            try command.run()
        } catch let failure as CommandFailure {
            if let message = failure.message { Standard.error("pinproxy: \(message)") }
            exit(failure.code)
        } catch {
            let code = Pinproxy.exitCode(for: error)
            let message = Pinproxy.fullMessage(for: error)
            if code == .success {
                let isVersion = message == Pinproxy.configuration.version
                Standard.output(isVersion ? "\(message)\n\(Pinproxy.libraries)" : message)
            } else if !message.isEmpty {
                Standard.error(message)
            }
            // ArgumentParser's own code for wrong usage is 64.
            exit(code == .validationFailure ? CommandFailure.usage : code.rawValue)
        }
    }

    /// Internal commands of this program are in neither the help nor the manual pages.
    private static func command() throws -> any ParsableCommand {
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments.first == ExecProxy.configuration.commandName {
            return try ExecProxy.parse(Array(arguments.dropFirst()))
        }
        return try alone(arguments) ?? Pinproxy.parseAsRoot()
    }

    /// Parses the command that the first argument names without the others: with all of them it takes a third of a
    /// short command's start.
    /// - Returns: nil for help, completions and wrong usage, which are the whole tree's to tell, and for commands that
    ///   have others.
    static func alone(_ arguments: [String]) -> (any ParsableCommand)? {
        guard let name = arguments.first,
            !arguments.contains(where: { $0.hasPrefix("--generate-completion-script") }),
            let command = Pinproxy.configuration.subcommands.first(where: { $0.configuration.commandName == name }),
            command.configuration.subcommands.isEmpty,
            let parsed = try? command.parseAsRoot(Array(arguments.dropFirst())), type(of: parsed) == command
        else { return nil }
        return parsed
    }
}

/// Each command spells its name out: to find it by reflection takes ArgumentParser a quarter of a start. Those without
/// subcommands name this one as well. Parsed alone, they then skip the search for the completions' options, which takes
/// as long again.
struct Pinproxy: ParsableCommand {
    static let name = "pinproxy"

    static let configuration = CommandConfiguration(
        commandName: name,
        abstract: "A local HTTPS proxy that enforces certificate and public-key pinning.",
        discussion: """
            The first five minutes:
              pinproxy run                                 start the proxy
              pinproxy exec -- curl https://example.org/   use it, in another terminal
              eval "$(pinproxy env)"                       or for the whole shell
              $EDITOR config/pins.yaml && pinproxy reload  change the pins

            Exit codes: 0 done, 1 the answer is no or it failed, 2 wrong usage, \
            78 the configuration is wrong.
            """,
        version: "pinproxy \(version)",
        subcommands: [
            Run.self, Check.self, PinCommand.self, ExplainCommand.self, LintCommand.self, Learn.self, CA.self,
            Env.self, Exec.self, Doctor.self, Status.self, Reload.self, TasksCommand.self,
            CacheCommand.self, IncidentsCommand.self, BundleCommand.self, Signer.self,
        ])

    static let version = ProxyDaemon.version

    /// `OpenSSL 3.0.17, libevent 2.1.12-stable, …`, the versions that are loaded. Only on request, since it loads some
    /// libraries.
    static var libraries: String {
        (LibraryVersions.all + DecoderLibraries.versions).map { "\($0.name) \($0.version)" }.joined(separator: ", ")
    }
}
