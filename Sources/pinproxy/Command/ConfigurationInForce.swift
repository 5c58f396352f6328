internal import FoundationEssentials
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// The running proxy's configuration in force: its files may have changed since it read them.
extension ConfigurationOptions {
    /// Reads the copy that the running proxy keeps of the configuration in force.
    func loadInForce() throws -> Snapshot {
        let files = try stateFiles()
        let proxy = try RunningProxy.require(files)
        let report: FilesReport = try proxy.ask(.get, FilesReport.target)
        try requireSame(report.configuration, of: proxy, in: files)
        let kept = KeptConfiguration(in: files.directory)
        do {
            guard report.kept, let copy = try kept.files(of: report.configuration, ofAnyOwner: true) else {
                throw CommandFailure(
                    "process \(proxy.process) keeps no copy of its active configuration, so it can't be checked: "
                        + "it runs with --no-fallback or for pinproxy exec --start, or its log says why "
                        + "(state.unwritable); without --live the files are checked"
                )
            }
            return try Snapshot.load(
                report.configuration, from: copy.files, stateDirectory: files.directory,
                services: Self.services(files.directory))
        } catch let problem as KeptConfigurationProblem {
            throw CommandFailure("the copy of what is in force can't be read: \(problem)")
        } catch let problems as ConfigurationProblems {
            throw CommandFailure("the copy of what is in force can't be used here:\n\(problems)")
        }
    }

    /// Says on standard error if the files that were read are not what the running proxy has in force.
    /// - Parameter advice: what else can be done about it.
    func remarkChanges(since snapshot: Snapshot, advice: String = "") {
        guard let proxy = RunningProxy.find(StateFiles(directory: snapshot.stateDirectory)),
            let file = snapshot.files.first,
            let report = try? proxy.ask(.get, FilesReport.target, within: Self.patience, as: FilesReport.self),
            ConfigurationChoice.isSame(file, report.configuration), let remark = report.remark
        else { return }
        Standard.error("pinproxy: \(remark)\(advice)")
    }

    /// - Throws: if `--config` names another file than the proxy reads.
    func requireSame(_ read: String, of proxy: RunningProxy, in files: StateFiles) throws {
        guard let config, !ConfigurationChoice.isSame(config, read) else { return }
        throw CommandFailure(
            "process \(proxy.process), which uses \(files.directory), reads \(read) and not \(config), "
                + "so no request was sent; leave --config out, or name the state directory of the intended "
                + "proxy with --state-directory")
    }
}

extension FilesReport {
    /// Why the files are not what is in force; nil: they are.
    var remark: String? {
        if let fallback { return "\(fallback); correct them and run pinproxy reload" }
        let files = changed
        guard !files.isEmpty else { return nil }
        let time = Date(timeIntervalSince1970: TimeInterval(readAt)).formatted(.iso8601)
        return
            """
            changed since the proxy read its files at \(time): \(files.map(\.printable).joined(separator: ", ")): run \
            pinproxy reload
            """
    }
}
