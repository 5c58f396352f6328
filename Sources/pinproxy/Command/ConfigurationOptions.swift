internal import ArgumentParser
internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// The options for configuration and state directory, common to all commands.
struct ConfigurationOptions: ParsableArguments {
    static let systemFile = ConfigurationChoice.systemFile
    static let localFile = ConfigurationChoice.localFile
    static let systemState = "/var/lib/pinproxy"

    @Option(
        help: ArgumentHelp(
            "The configuration.",
            discussion:
                """
                Without it: that of this user's running proxy, else \(systemFile), else \(localFile) below the working \
                directory.
                """,
            valueName: "file"),
        completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp(
            "The directory of the proxy's authority and its other state.",
            discussion:
                """
                Without it: $STATE_DIRECTORY, else \(systemState) if the configuration is \(systemFile), \
                \(systemState)-instances/NAME if it is another /etc/pinproxy/NAME.yaml, and that exists, else \
                $XDG_STATE_HOME/pinproxy, else ~/.local/state/pinproxy.
                """,
            valueName: "dir"),
        completion: .directory)
    var stateDirectory: String?

    /// The state directory of the service with that configuration: pinproxy.service, or pinproxy@NAME.service with
    /// /etc/pinproxy/NAME.yaml.
    static func serviceState(of file: String?) -> String? {
        guard let file, PathText.directory(of: file) == PathText.directory(of: systemFile), file.hasSuffix(".yaml")
        else { return nil }
        if file == systemFile { return systemState }
        let name = PathText.name(of: file).dropLast(".yaml".utf8.count)
        return name.isEmpty ? nil : "\(systemState)-instances/\(name)"
    }

    func stateDirectory(for file: String?) throws -> String {
        if let stateDirectory { return stateDirectory }
        let environment = StartEnvironment.variables
        if environment["STATE_DIRECTORY"] == nil, let state = Self.serviceState(of: file), access(state, F_OK) == 0 {
            return state
        }
        guard let path = StateDirectory.path(environment: environment) else {
            throw CommandFailure(
                "there is no state directory: none of STATE_DIRECTORY, XDG_STATE_HOME and HOME is set; "
                    + "name it with --state-directory DIR")
        }
        return path
    }

    /// The users of a proxy with that state directory, or of the installed service: a candidate's may be root's own.
    static func services(_ directory: String) -> Set<UInt32> {
        guard geteuid() == 0 else { return [] }
        return Set([directory, systemState].compactMap { TrustedDirectory($0).owner })
    }

    /// Reads the configuration. Problems are printed, and end the command if one is an error.
    /// - Parameters:
    ///   - readsPins: false for what is about the proxy alone, so that an error in the pin file is no hindrance.
    ///   - instant: when certificates must be valid; nil: now.
    ///   - readsSecrets: false: what only the proxy's own user may read is left aside.
    ///   - isProxy: this process will serve, so it must be able to read private files itself.
    func load(
        showingWarnings: Bool = false, readsPins: Bool = true, at instant: UnixTime? = nil, isProxy: Bool = false,
        readsSecrets: Bool = true, policyDirectory: String? = nil
    ) throws -> Snapshot {
        let (file, directory): (String, String)
        if isProxy {
            file = try fileForProxy()
            directory = try stateDirectory(for: file)
        } else {
            let choice = try choice()
            (file, directory) = (choice.file, choice.stateDirectory)
            if let remark = choice.remark { Standard.error("pinproxy: \(remark)") }
        }
        do throws(ConfigurationProblems) {
            let snapshot = try Snapshot.load(
                file, stateDirectory: directory, readsPins: readsPins, at: instant,
                services: isProxy ? [] : Self.services(directory),
                readsSecrets: readsSecrets, policyDirectory: policyDirectory)
            if showingWarnings { for warning in snapshot.warnings(at: Clock.now) { Standard.error("\(warning)") } }
            return snapshot
        } catch {
            Standard.error(error.description)
            throw CommandFailure(code: CommandFailure.configuration)
        }
    }

    /// The configuration, or the last one in force if it is refused. A missing configuration is an error.
    /// - Parameter kept: nil: the present one or none.
    func load(orKept kept: KeptConfiguration?) throws -> (snapshot: Snapshot, fallback: ConfigurationFallback?) {
        let file = try fileForProxy()
        let directory = try stateDirectory(for: file)
        do throws(ConfigurationProblems) {
            return (try Snapshot.load(file, stateDirectory: directory), nil)
        } catch let refusal {
            func refused(_ remark: String? = nil) -> CommandFailure {
                Standard.error(refusal.description)
                return CommandFailure(code: CommandFailure.configuration, message: remark)
            }
            guard let kept, access(file, F_OK) == 0 || errno != ENOENT else { throw refused() }
            do {
                guard let (files, keptAt) = try kept.files(of: file) else { throw refused() }
                let snapshot = try Snapshot.load(file, from: files, stateDirectory: directory)
                return (snapshot, ConfigurationFallback(refusal: refusal, keptAt: keptAt))
            } catch let problem as KeptConfigurationProblem {
                throw refused("the configuration that was last in force can't be used either: \(problem)")
            } catch let problems as ConfigurationProblems {
                throw refused("the configuration that was last in force (\(kept.path)) is refused too:\n\(problems)")
            }
        }
    }
}

/// The hosts that shells complete: those that the configuration names.
enum HostCompletion {
    /// Among more than these, a person types more letters.
    private static let limit = 1000

    static let kind = CompletionKind.custom { words, _, prefix in hosts(words, beginningWith: prefix) }

    /// - Parameter words: the command line so far, which may name a configuration. With a wrong one nothing is
    ///   completed.
    private static func hosts(_ words: [String], beginningWith prefix: String) -> [String] {
        // bash hands over --config=FILE as three words.
        let words = words.filter { $0 != "=" }
        let place = words.firstIndex { $0 == "--config" || $0.hasPrefix("--config=") }
        let configuration = place.map { Array(words[$0...].prefix(words[$0] == "--config" ? 2 : 1)) } ?? []
        guard let options = try? ConfigurationOptions.parse(configuration), let choice = try? options.choice(),
            let snapshot = try? Snapshot.load(
                choice.file, stateDirectory: choice.stateDirectory,
                services: ConfigurationOptions.services(choice.stateDirectory))
        else { return [] }
        let names = snapshot.hosts.entries.lazy.filter { $0.pattern.scope == .exact }.map { $0.pattern.description }
            .filter { $0.hasPrefix(prefix) }.prefix(limit)
        // For zsh a description follows a colon.
        return names.map { CompletionShell.requesting == .zsh ? $0.replacing(":", with: "\\:") : $0 }
    }
}
