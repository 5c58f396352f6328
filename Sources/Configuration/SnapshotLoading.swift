internal import Security
internal import Session

extension Snapshot {
    /// Reads pinproxy.yaml and all that it names, as `run`, `check` and a reload do.
    ///
    /// - Parameters:
    ///   - file: the path of pinproxy.yaml; problems name it as it is given here.
    ///   - stateDirectory: what the authority's paths are relative to (``StateDirectory``). Nothing
    ///     is written there.
    ///   - readsPins: false leaves the pin file aside, for who only wants to know where the proxy is.
    /// - Throws: every problem that was found, if at least one is an error.
    package static func load(
        _ file: String, stateDirectory: String, readsPins: Bool = true
    ) throws(ConfigurationProblems) -> Snapshot {
        try load(file, stateDirectory: stateDirectory, readsPins: readsPins, findings: Findings())
    }

    /// - Parameter findings: knows which keys aren't supported yet.
    static func load(
        _ file: String, stateDirectory: String, readsPins: Bool = true, findings: Findings
    ) throws(ConfigurationProblems) -> Snapshot {
        let daemon = DaemonFile.read(file, stateDirectory: stateDirectory, findings: findings)
        let pinFile = readsPins ? daemon?.pins : nil
        let pins = pinFile.flatMap { PinFile.read($0.path, namedAt: $0.place, findings: findings) }
        guard let daemon, !findings.hasErrors else { throw ConfigurationProblems(findings.sorted) }
        let files = [file] + (pinFile.map { [$0.path] } ?? [])
        return Snapshot(
            proxy: daemon.proxy, authority: daemon.authority, upstream: daemon.upstream,
            timeouts: daemon.timeouts, limits: daemon.limits, log: daemon.log,
            reachability: daemon.reachability, pins: pins, warnings: findings.sorted, stateDirectory: stateDirectory, files: files)
    }
}
