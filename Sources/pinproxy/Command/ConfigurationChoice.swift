internal import FoundationEssentials
internal import Glibc
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxySecurity

/// The configuration that a command uses, and the state directory that belongs to it.
struct ConfigurationChoice {
    static let systemFile = "/etc/pinproxy/pinproxy.yaml"
    static let localFile = "config/pinproxy.yaml"

    let file: String
    let stateDirectory: String
    /// Names the chosen configuration on standard error; nil: it is obvious.
    let remark: String?

    /// Whether both paths name the same file, links followed.
    static func isSame(_ path: String, _ other: String) -> Bool {
        func resolved(_ path: String) -> String { URL(fileURLWithPath: path).resolvingSymlinksInPath().path }
        return resolved(path) == resolved(other)
    }
}

extension ConfigurationOptions {
    /// Seconds for the proxy's answer.
    static let patience = 3

    /// `--config`, else the running proxy's configuration, else the service's, else the working directory's.
    /// - Throws: if none exists, or it must not be taken unasked.
    func choice() throws -> ConfigurationChoice {
        guard let choice = try choiceIfAny() else {
            throw Self.missing(
                "no proxy of this user is running, and neither \(Self.systemFile) nor \(Self.localFile) exists")
        }
        return choice
    }

    /// The chosen configuration; nil if none exists.
    func choiceIfAny() throws -> ConfigurationChoice? {
        if let config {
            return ConfigurationChoice(file: config, stateDirectory: try stateDirectory(for: config), remark: nil)
        }
        var failure: String?
        if let running = runningProxy {
            do throws(CommandFailure) {
                let read = try Self.file(of: running.proxy, in: running.files, isNamed: stateDirectory != nil)
                let file = Self.present.first { ConfigurationChoice.isSame($0, read) } ?? read
                let other = Self.present.first { !ConfigurationChoice.isSame($0, file) }
                return ConfigurationChoice(
                    file: file, stateDirectory: running.files.directory,
                    remark: other.map {
                        """
                        using \(file), which the running proxy (process \(running.proxy.process)) reads, and not \
                        \($0); --config names another
                        """
                    })
            } catch {
                failure = error.message
            }
        }
        guard let file = try usualFileIfAny() else { return nil }
        let other = Self.present.first { !ConfigurationChoice.isSame($0, file) }
        let remark =
            failure.map { "using \(file): which file the running proxy reads can't be found out: \($0)" }
            ?? other.map { "using \(file), and not \($0); --config names another" }
        return ConfigurationChoice(file: file, stateDirectory: try stateDirectory(for: file), remark: remark)
    }

    /// For a process that becomes the proxy: `--config`, else the service's configuration, else the working
    /// directory's.
    func fileForProxy() throws -> String {
        if let config { return config }
        guard let file = try usualFileIfAny() else {
            throw Self.missing("neither \(Self.systemFile) nor \(Self.localFile) exists")
        }
        return file
    }

    /// The state files of the running proxy that this command means, else those of the configuration.
    func stateFiles() throws -> StateFiles {
        if config == nil, let running = runningProxy { return running.files }
        return StateFiles(directory: try stateDirectory(for: config ?? (try? usualFileIfAny())))
    }

    /// The proxy of `--state-directory`, else this user's.
    private var runningProxy: (proxy: RunningProxy, files: StateFiles)? {
        guard let directory = stateDirectory ?? StateDirectory.path(environment: StartEnvironment.variables) else {
            return nil
        }
        let files = StateFiles(directory: directory)
        return RunningProxy.find(files).map { ($0, files) }
    }

    /// - Parameter isNamed: the state directory was named. Else another user's proxy is not trusted.
    private static func file(
        of proxy: RunningProxy, in files: StateFiles, isNamed: Bool
    ) throws(CommandFailure) -> String {
        do {
            if !isNamed { try files.own.requireOwn() }
            let report: FilesReport = try proxy.ask(.get, FilesReport.target, within: patience)
            return report.configuration
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    private static var present: [String] { [systemFile, localFile].filter { access($0, F_OK) == 0 } }

    /// - Throws: if the working directory's belongs to another user.
    private func usualFileIfAny() throws -> String? {
        if access(Self.systemFile, F_OK) == 0 { return Self.systemFile }
        var status = stat()
        guard stat(Self.localFile, &status) == 0 else { return nil }
        // A file in a directory that any user may have made is not used by default.
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw CommandFailure(
                code: CommandFailure.configuration,
                message: "\(Self.localFile) belongs to another user; "
                    + "if it is the right one, name it with --config \(Self.localFile)")
        }
        return Self.localFile
    }

    private static func missing(_ cause: String) -> CommandFailure {
        CommandFailure(
            code: CommandFailure.configuration,
            message: "there is no configuration: \(cause); name it with --config FILE")
    }
}
