internal import Glibc
internal import Security
internal import Session
package import TLS

extension Snapshot {
    /// Reads pinproxy.yaml and all that it names, as `run`, `check` and a reload do.
    ///
    /// - Parameters:
    ///   - file: the path of pinproxy.yaml; problems name it as it is given here.
    ///   - stateDirectory: what the authority's paths are relative to (``StateDirectory``). Nothing
    ///     is written there.
    ///   - readsPins: false leaves the pin file aside, and what only the proxy's own user may read, for who only wants to
    ///     know where the proxy is.
    ///   - unixTime: the instant for which certificates are to be good; nil: now.
    ///   - services: for root's commands, users that the proxy may run as: private files may be theirs.
    /// - Throws: every problem that was found, if at least one is an error.
    package static func load(
        _ file: String, stateDirectory: String, readsPins: Bool = true, at unixTime: UnixTime? = nil, services: Set<UInt32> = []
    ) throws(ConfigurationProblems) -> Snapshot {
        try load(
            file, stateDirectory: stateDirectory, readsPins: readsPins, at: unixTime ?? UnixTime(time(nil)),
            findings: Findings(services: services))
    }

    static func load(
        _ file: String, stateDirectory: String, readsPins: Bool = true, at unixTime: UnixTime = UnixTime(time(nil)),
        findings: Findings
    ) throws(ConfigurationProblems) -> Snapshot {
        let daemon = DaemonFile.read(file, stateDirectory: stateDirectory, at: unixTime, readsPrivateFiles: readsPins, findings: findings)
        let pinFile = readsPins ? daemon?.pins : nil
        let pins = pinFile.flatMap { PinFile.read($0.path, namedAt: $0.place, findings: findings) }
        guard let daemon, !findings.hasErrors else { throw ConfigurationProblems(findings.sorted) }
        let files = [file] + (pinFile.map { [$0.path] } ?? [])
        return Snapshot(
            proxy: daemon.proxy, authority: daemon.authority, upstream: daemon.upstream,
            timeouts: daemon.timeouts, limits: daemon.limits, log: daemon.log,
            admin: daemon.admin, reachability: daemon.reachability, pins: pins, warnings: findings.sorted, stateDirectory: stateDirectory, files: files,
            sources: findings.sources.stamps)
    }
}
