// Configuration: files in, one immutable and validated snapshot out, or every problem at once.

package import Security
package import Session

/// One generation of the configuration. Nothing in it changes; a reload makes a new one, and who
/// holds the old one keeps it to the end of what it is doing.
package final class Snapshot: Sendable {
    package let proxy: ProxySettings
    package let authority: AuthoritySettings
    package let upstream: UpstreamSettings
    package let timeouts: Timeouts
    package let limits: Limits
    package let log: LogSettings
    package let admin: AdminSettings
    package let hosts: HostTable<HostEntry>
    /// An entry's `clients` ask for more than the user.
    package let asksForProcesses: Bool
    /// What is done with hosts that have no entry.
    package let defaultAction: HostAction
    /// The policy of hosts that have no entry: the trust anchors decide.
    package let defaultPolicy: SecurityPolicy
    /// How TLS is spoken with them; nil: as with most.
    package let defaultTLS: ClientTLS?
    /// The rules of exchanges with them; nil: nothing is written about it.
    package let defaultRules: RuleLayers?
    /// What is watched, to know whether the network can be reached.
    package let reachability: [ReachabilityTarget]
    /// What is allowed but should be known, e.g. each insecure switch that is on. To be said at
    /// every start and reload.
    package let warnings: [Problem]
    /// The directory of the authority and of what else the daemon makes itself.
    package let stateDirectory: String
    /// The files that were read, the main one first.
    package let files: [String]
    /// The versions of the files that decide what is let through.
    let sources: [FileStamp]

    init(
        proxy: ProxySettings, authority: AuthoritySettings, upstream: UpstreamSettings, timeouts: Timeouts,
        limits: Limits, log: LogSettings, admin: AdminSettings, reachability: [ReachabilityTarget], pins: PinFile?,
        warnings: [Problem], stateDirectory: String, files: [String], sources: [FileStamp]
    ) {
        self.proxy = proxy
        self.authority = authority
        self.upstream = upstream
        self.timeouts = timeouts
        self.limits = limits
        self.log = log
        self.admin = admin
        hosts = pins?.hosts ?? HostTable()
        asksForProcesses = hosts.values.contains { $0.clients?.asksForProcesses == true }
        let defaults = pins?.defaults ?? PinDefaults()
        defaultAction = defaults.action
        defaultPolicy = SecurityPolicy(requirements: defaults.requirements)
        defaultTLS = pins?.defaultTLS
        defaultRules = defaults.rules
        self.reachability = reachability
        self.warnings = warnings
        self.stateDirectory = stateDirectory
        self.files = files
        self.sources = sources
    }

    /// The same snapshot with other policies.
    init(_ other: Snapshot, hosts: HostTable<HostEntry>, defaultPolicy: SecurityPolicy) {
        proxy = other.proxy
        authority = other.authority
        upstream = other.upstream
        timeouts = other.timeouts
        limits = other.limits
        log = other.log
        admin = other.admin
        self.hosts = hosts
        asksForProcesses = other.asksForProcesses
        defaultAction = other.defaultAction
        self.defaultPolicy = defaultPolicy
        defaultTLS = other.defaultTLS
        defaultRules = other.defaultRules
        reachability = other.reachability
        warnings = other.warnings
        stateDirectory = other.stateDirectory
        files = other.files
        sources = other.sources
    }

    /// The same for a proxy that `pinproxy exec --start` has started: on a port of the loopback that the system chooses, so that it is in
    /// nobody's way; without the admin port; it logs what is wrong, and waits for nobody when it is no longer needed. It has its owner's
    /// secrets, and serves no one else.
    package init(forRuns other: Snapshot, of owner: UInt32) {
        var (proxy, timeouts, log) = (other.proxy, other.timeouts, other.log)
        proxy.listen = ListenSettings(addresses: [ListenAddress(ip: "127.0.0.1", port: 0)])
        proxy.owner = owner
        timeouts.drain = min(timeouts.drain, .seconds(2))
        timeouts.drainTunnels = min(timeouts.drainTunnels, .seconds(1))
        log.level = log.level.atLeast(.warning)
        log.format = log.format == .text ? .text : .json
        log.access = false
        self.proxy = proxy
        self.timeouts = timeouts
        self.log = log
        admin = AdminSettings()
        authority = other.authority
        upstream = other.upstream
        limits = other.limits
        hosts = other.hosts
        asksForProcesses = other.asksForProcesses
        defaultAction = other.defaultAction
        defaultPolicy = other.defaultPolicy
        defaultTLS = other.defaultTLS
        defaultRules = other.defaultRules
        reachability = other.reachability
        warnings = other.warnings
        stateDirectory = other.stateDirectory
        files = other.files
        sources = other.sources
    }

    /// Where the local authority is.
    package var authorityFiles: AuthorityFiles {
        AuthorityFiles(certificate: authority.certificatePath, key: authority.privateKeyPath, state: stateDirectory)
    }

    /// The entry that decides for a host, or nil when none speaks for it.
    /// - Parameter host: a name in any case, with or without its trailing dot, or an address
    ///   without brackets.
    package func entry(for host: String, port: UInt16) -> HostEntry? {
        hosts.value(forHost: host, port: port)
    }
}
