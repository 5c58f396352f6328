// Configuration: files in, one immutable and validated snapshot out, or every problem at once.

internal import Glibc
package import PinproxyBundles
package import PinproxySecurity
package import PinproxySession
package import PinproxyTLS

/// One generation of the configuration, immutable: a reload makes a new one, and work in flight keeps the old one.
package final class Snapshot: Sendable {
    package let proxy: ProxySettings
    package let authority: AuthoritySettings
    package let upstream: UpstreamSettings
    package let timeouts: Timeouts
    package let limits: Limits
    package let cache: CacheSizes
    /// Some entry stores responses on disk.
    package let storesOnDisk: Bool
    package let log: LogSettings
    package let admin: AdminSettings
    package let hosts: HostTable<HostEntry>
    /// An entry's `clients` ask for more than the user.
    package let asksForProcesses: Bool
    /// The source of the policy; nil: only the machine's own pin file.
    package let policy: PolicySettings?
    /// The collector of this machine's metrics and events; nil: none.
    package let telemetry: TelemetrySettings?
    /// Nil: no bundle is in force.
    package let bundle: BundleInForce?
    /// Why every host is denied; nil: the entries decide.
    package let denial: String?
    /// The action for hosts without an entry.
    package let defaultAction: HostAction
    /// The policy of hosts without an entry: the trust anchors decide.
    package let defaultPolicy: SecurityPolicy
    /// TLS settings for them; nil: the defaults.
    package let defaultTLS: ClientTLS?
    /// The rules of exchanges with them; nil: no rules are written.
    package let defaultRules: RuleLayers?
    /// The targets watched to determine reachability.
    package let reachability: [ReachabilityTarget]
    /// Allowed but notable settings, e.g. insecure switches. Those that depend on time are in ``warnings(at:)``.
    package let warnings: [Problem]
    package let stateDirectory: String
    /// The directory of the accepted bundle.
    private let policyDirectory: String
    /// The files that were read: pinproxy.yaml, the main pin file, the further ones.
    package let files: [String]
    /// The versions of the files that decide what is allowed.
    package let sources: [FileStamp]
    /// The files that patterns named (`pins.d/*.yaml`).
    package let listings: [FileListing]
    /// The digest of pinproxy.yaml and all pin files, the bundle's included: equal on machines with equal policies.
    package let digest: SHA256Digest

    init(
        _ daemon: DaemonFile, pins: PinFile?, bundle: BundleInForce?, denial: String?, warnings: [Problem],
        stateDirectory: String, policyDirectory: String, files: [String], sources: FileSources
    ) {
        self.policyDirectory = policyDirectory
        policy = daemon.policy
        telemetry = daemon.telemetry
        self.bundle = bundle
        self.denial = denial
        proxy = daemon.proxy
        authority = daemon.authority
        upstream = daemon.upstream
        timeouts = daemon.timeouts
        limits = daemon.limits
        cache = daemon.cache
        log = daemon.log
        admin = daemon.admin
        reachability = daemon.reachability
        hosts = pins?.hosts ?? HostTable()
        asksForProcesses = hosts.values.contains { $0.clients?.asksForProcesses == true }
        let defaults = pins?.defaults ?? PinDefaults()
        defaultAction = denial == nil ? defaults.action : .deny
        defaultPolicy = SecurityPolicy(requirements: defaults.requirements)
        defaultTLS = pins?.defaultTLS
        defaultRules = defaults.rules
        storesOnDisk =
            defaults.rules?.storesOnDisk == true || hosts.values.contains { $0.rules?.storesOnDisk == true }
        self.warnings = warnings
        self.stateDirectory = stateDirectory
        self.files = files
        self.sources = sources.stamps
        listings = sources.listings
        digest = sources.digest
    }

    /// The main pin file; nil: `pins` isn't set.
    package var pinFile: String? { files.count > 1 ? files[1] : nil }

    /// Makes a copy with the given values changed.
    init(
        _ other: Snapshot, proxy: ProxySettings? = nil, timeouts: Timeouts? = nil, log: LogSettings? = nil,
        admin: AdminSettings? = nil, hosts: HostTable<HostEntry>? = nil, defaultPolicy: SecurityPolicy? = nil,
        denial: String? = nil, hasTelemetry: Bool = true
    ) {
        policyDirectory = other.policyDirectory
        self.proxy = proxy ?? other.proxy
        authority = other.authority
        upstream = other.upstream
        self.timeouts = timeouts ?? other.timeouts
        limits = other.limits
        cache = other.cache
        self.log = log ?? other.log
        self.admin = admin ?? other.admin
        self.hosts = hosts ?? other.hosts
        asksForProcesses = other.asksForProcesses
        policy = other.policy
        telemetry = hasTelemetry ? other.telemetry : nil
        bundle = denial == nil ? other.bundle : nil
        self.denial = denial ?? other.denial
        defaultAction = denial == nil ? other.defaultAction : .deny
        self.defaultPolicy = defaultPolicy ?? other.defaultPolicy
        defaultTLS = other.defaultTLS
        defaultRules = other.defaultRules
        storesOnDisk = other.storesOnDisk
        reachability = other.reachability
        warnings = other.warnings
        stateDirectory = other.stateDirectory
        files = other.files
        sources = other.sources
        listings = other.listings
        digest = other.digest
    }

    /// Makes a copy for a proxy of `pinproxy exec --start`: on a loopback port that the system chooses, without an
    /// admin port and a collector, and with short drains. It has its owner's secrets, and serves only the owner.
    package convenience init(forRuns other: Snapshot, of owner: UInt32) {
        var (proxy, timeouts, log) = (other.proxy, other.timeouts, other.log)
        proxy.listen = ListenSettings(addresses: [ListenAddress(ip: "127.0.0.1", port: 0)])
        proxy.owner = owner
        timeouts.drain = min(timeouts.drain, .seconds(2))
        timeouts.drainTunnels = min(timeouts.drainTunnels, .seconds(1))
        log.level = log.level.atLeast(.warning)
        log.format = log.format == .text ? .text : .json
        log.access = false
        self.init(
            other, proxy: proxy, timeouts: timeouts, log: log, admin: AdminSettings(), hasTelemetry: false)
    }

    /// Makes a copy that denies every host, for this cause.
    package convenience init(denying cause: String, _ other: Snapshot) {
        self.init(other, hosts: HostTable(), denial: cause)
    }

    /// The bundle that the proxy has accepted; nil: it takes no bundle.
    package var policyFile: String? { policy == nil ? nil : "\(policyDirectory)/\(KeptBundle.fileName)" }

    package var authorityFiles: AuthorityFiles { authorityFiles(isSignedElsewhere: false) }

    /// The authority's files for the proxy, which doesn't read a key that a signer has.
    package var proxysAuthorityFiles: AuthorityFiles { authorityFiles(isSignedElsewhere: authority.signer != nil) }

    private func authorityFiles(isSignedElsewhere: Bool) -> AuthorityFiles {
        AuthorityFiles(
            certificate: authority.certificatePath, key: authority.privateKeyPath,
            // A signer has a separate directory.
            state: authority.signer == nil ? stateDirectory : NewFile.directory(of: authority.certificatePath),
            permitting: authority.permitted, isSignedElsewhere: isSignedElsewhere)
    }

    /// The entry that decides for a host; nil if none matches.
    /// - Parameter host: a name in any case, with or without its trailing dot, or an address without brackets.
    package func entry(for host: String, port: UInt16) -> HostEntry? {
        hosts.value(forHost: host, port: port)
    }
}

extension Snapshot {
    /// Reads pinproxy.yaml and all that it names, as `run`, `check` and a reload do. Problems name the file so.
    /// - Parameters:
    ///   - readsPins: false: skips the pin file, trust anchors, and files that only the proxy's own user may read.
    ///   - unixTime: the instant when certificates must be valid; nil: now.
    ///   - services: for root's commands, users that the proxy may run as: private files may be theirs.
    ///   - readsSecrets: false: skips files that only the proxy's own user may read, whichever file names them.
    ///   - policyDirectory: where the proxy keeps its bundle; nil: in the state directory.
    /// - Throws: every problem that was found, if at least one is an error.
    package static func load(
        _ file: String, stateDirectory: String, readsPins: Bool = true, at unixTime: UnixTime? = nil,
        services: Set<UInt32> = [],
        readsSecrets: Bool = true, policyDirectory: String? = nil
    ) throws(ConfigurationProblems) -> Snapshot {
        try load(
            file, stateDirectory: stateDirectory, readsPins: readsPins, at: unixTime ?? UnixTime(time(nil)),
            policyDirectory: policyDirectory, findings: Findings(services: services, readsSecrets: readsSecrets))
    }

    /// - Parameters:
    ///   - candidate: a bundle, in place of the accepted one.
    ///   - trial: the same, taken unverified.
    static func load(
        _ file: String, stateDirectory: String, readsPins: Bool = true, at unixTime: UnixTime = UnixTime(time(nil)),
        policyDirectory: String? = nil, candidate: KeptBundle? = nil, trial: PolicyBundle? = nil, findings: Findings
    ) throws(ConfigurationProblems) -> Snapshot {
        let daemon = DaemonFile.read(
            file, stateDirectory: stateDirectory, at: unixTime, readsPrivateFiles: readsPins && findings.readsSecrets,
            readsAnchors: readsPins, findings: findings)
        let pinFile = readsPins ? daemon?.pins : nil
        let policyDirectory = policyDirectory ?? stateDirectory
        var (bundle, denial): (BundleInForce?, String?)
        if let trial {
            bundle = BundleInForce(trial: trial)
        } else if readsPins, let policy = daemon?.policy {
            let reader = KeptBundleReader(
                settings: policy, directory: policyDirectory, findings: findings, now: unixTime)
            switch reader.read(candidate) {
            case .bundle(let found): bundle = found
            case .none: break
            case .denied(let cause): denial = cause
            }
        }
        do throws(FileProblem) {
            if let bundle { try findings.sources.add(bundle) }
        } catch {
            findings.error(Place(file: BundleInForce.pinFile), "can't be read: \(error)")
        }
        var pins =
            pinFile != nil || bundle != nil ? PinFile.read(pinFile, beside: bundle, findings: findings) : nil
        if let hosts = pins?.hosts { pins?.hosts = hosts.enforcing(asWrittenIn: policyDirectory, findings) }
        guard let daemon, !findings.hasErrors else { throw ConfigurationProblems(findings.sorted) }
        let files = [file] + (pins?.files ?? pinFile.map { [$0.path] } ?? [])
        return Snapshot(
            daemon, pins: denial == nil ? pins : nil, bundle: bundle, denial: denial, warnings: findings.sorted,
            stateDirectory: stateDirectory, policyDirectory: policyDirectory, files: files, sources: findings.sources)
    }

    /// Rereads the same files with another bundle, or because the dates of the present one have passed.
    /// - Parameters:
    ///   - candidate: nil: the accepted one.
    ///   - copies: of the files; nil: the files are unchanged.
    package func renewed(
        with candidate: KeptBundle?, from copies: ConfigurationFiles? = nil
    ) throws(ConfigurationProblems) -> Snapshot {
        let sources = if let copies { try FileSources(copies, of: self) } else { FileSources() }
        return try Self.load(
            files.first ?? "", stateDirectory: stateDirectory, policyDirectory: policyDirectory, candidate: candidate,
            findings: Findings(sources: sources))
    }

    /// Whether its files are unchanged since it was read.
    package var isCurrent: Bool { sources.allSatisfy(\.isCurrent) && listings.allSatisfy(\.isCurrent) }

    /// Reads the configuration with a bundle that was verified elsewhere, or is a draft: for display, never to be put
    /// into force.
    package static func load(
        _ file: String, trying bundle: PolicyBundle, stateDirectory: String, services: Set<UInt32> = []
    ) throws(ConfigurationProblems) -> Snapshot {
        try load(file, stateDirectory: stateDirectory, trial: bundle, findings: Findings(services: services))
    }
}

extension Snapshot {
    /// Each copy takes a descriptor while it is read.
    private static let copiesLimit = 256

    /// Copies of the files that this configuration was read from, unchanged since.
    /// - Parameter limit: of all of them together, in bytes.
    package func copyFiles(limit: Int) throws(ConfigurationFilesProblem) -> ConfigurationFiles {
        guard sources.count <= Self.copiesLimit else { throw .tooMany(limit: Self.copiesLimit) }
        if let listing = listings.first(where: { !$0.isCurrent }) { throw .changed(path: listing.directory) }
        var (contents, left) = ([ConfigurationFiles.File](), limit)
        for stamp in sources {
            let bytes: [UInt8]
            do throws(FileProblem) {
                bytes = try SmallFile.read(stamp.path, limit: left).bytes
            } catch .tooLarge {
                throw .tooLarge(limit: limit)
            } catch {
                throw .unreadable(path: stamp.path, error)
            }
            guard stamp.isCurrent else { throw .changed(path: stamp.path) }
            left -= bytes.count
            contents.append(ConfigurationFiles.File(path: stamp.path, bytes: bytes))
        }
        return ConfigurationFiles(contents: contents)
    }

    /// Reads the configuration from copies of its files. Problems name the files themselves.
    package static func load(
        _ file: String, from copies: ConfigurationFiles, stateDirectory: String, services: Set<UInt32> = []
    ) throws(ConfigurationProblems) -> Snapshot {
        try load(
            file, stateDirectory: stateDirectory,
            findings: Findings(services: services, sources: try FileSources(copies)))
    }
}

/// Revocation lists change often, and others change them: they are reread alone, without the pin file.
extension Snapshot {
    /// The sets of lists in force, each once, with the entry that names it first (nil: the defaults).
    package var revocationLists: [(lists: RevocationLists, entry: HostEntry?)] {
        var found: [(lists: RevocationLists, entry: HostEntry?)] = []
        var known: Set<ObjectIdentifier> = []
        func look(_ lists: RevocationLists?, _ entry: HostEntry?) {
            guard let lists, known.insert(ObjectIdentifier(lists)).inserted else { return }
            found.append((lists, entry))
        }
        look(defaultPolicy.requirements.revocationLists, nil)
        for entry in hosts.values { look(entry.policy.requirements.revocationLists, entry) }
        return found
    }

    /// A copy with the current lists of their files; nil if they are unchanged.
    package func withFreshRevocationLists() throws(RevocationListError) -> Snapshot? {
        var fresh: [ObjectIdentifier: RevocationLists] = [:]
        for (lists, _) in revocationLists {
            let read = try RevocationLists.load(lists.paths)
            if read.digest != lists.digest { fresh[ObjectIdentifier(lists)] = read }
        }
        guard !fresh.isEmpty else { return nil }
        func replaced(_ policy: SecurityPolicy) -> SecurityPolicy? {
            guard let lists = policy.requirements.revocationLists, let new = fresh[ObjectIdentifier(lists)] else {
                return nil
            }
            var requirements = policy.requirements
            requirements.revocationLists = new
            return policy.replacing(requirements)
        }
        let entries = hosts.mapValues { entry in
            replaced(entry.policy).map { HostEntry(entry, policy: $0) } ?? entry
        }
        return Snapshot(self, hosts: entries, defaultPolicy: replaced(defaultPolicy) ?? defaultPolicy)
    }
}
