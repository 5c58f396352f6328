internal import ArgumentParser
internal import PinproxyBundles
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

struct BundleRehearseCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rehearse", abstract: "Show which hosts a bundle would refuse on this machine.",
        discussion: """
            Verifies the bundle as this machine would (policy in pinproxy.yaml, and what it has accepted before), \
            reads it together with the machine's own pin file, and connects to hosts as pinproxy explain does: to the \
            policy server, to those that the proxy has seen in the last days (pins.json and chains.json in the state \
            directory; pinproxy learn records all), and to those that entries name. What would be refused is checked \
            again with the policy in force. The running proxy isn't touched.

            Exits 0 if nothing more is refused than now, and 1 if something is, or the bundle isn't valid here. \
            Hosts that can't be reached count for neither. What pinproxy lint says of the bundle's lines follows.

            --unsigned is for a draft, before anybody signs it: signatures, versions and the timestamp are then not \
            checked.

            --json prints one object: version, sha256, verified, hosts (how many were asked); refused, a list with \
            host, port, cause, entry (pattern, file, line; left out for the defaults), new (whether what is in force \
            accepts it; left out if that isn't known); unreachable, a list with host, port, cause; left_out; \
            remarks, a list of texts; findings, as pinproxy lint --json has them.

            Examples:
              pinproxy bundle rehearse policy.bundle
              pinproxy bundle rehearse policy.bundle --unsigned --days 7
            """)

    private static let longest = 90
    private static let mostHosts = 10_000
    /// How long the connections of one policy may take together.
    private static let timeForConnections = Duration.seconds(120)

    @OptionGroup var path: BundlePath
    @OptionGroup var options: ConfigurationOptions
    @Option(help: ArgumentHelp("Hosts seen in this many days.", valueName: "number")) var days = 30
    @Option(help: ArgumentHelp("The most hosts to connect to.", valueName: "number")) var maxHosts = 200
    @Flag(help: "Accept a draft: don't check signatures, versions and the timestamp.") var unsigned = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        guard (1...Self.longest).contains(days) else {
            throw ValidationError("--days: \(days) is not from 1 to \(Self.longest), as long as hosts are remembered")
        }
        guard (1...Self.mostHosts).contains(maxHosts) else {
            throw ValidationError("--max-hosts: \(maxHosts) is not from 1 to \(Self.mostHosts)")
        }
    }

    func run() throws {
        let current = try options.load()
        guard let settings = current.policy else {
            throw CommandFailure(
                code: CommandFailure.configuration,
                message: "\(current.files[0]): this machine uses no bundle: policy isn't set there")
        }
        options.remarkChanges(since: current)
        let now = Clock.now
        let bundle = try bundle(settings, current.stateDirectory, now)
        let new = try snapshot(with: bundle, in: current)

        var findings: [LintFinding] = []
        let chains = LintCommand.visited(current, &findings)
        var pins = PinHistory()
        findings += LintCommand.counted("pins", PinHistory.fileName, in: current, empty: pins) {
            pins = $0
            return []
        }
        let chosen = RehearsedHosts(
            chains, pins, since: now - UnixTime(days) * 86_400, in: new, server: settings.bundle, limit: maxHosts)
        let hosts = try RehearsedHost.rehearse(
            chosen.hosts, under: new, beside: current, at: now, within: Self.timeForConnections)
        findings += lint(new, hosts, now)
        let report = RehearsalReport(
            bundle, verified: !unsigned, hosts, leftOut: chosen.leftOut, remarks: remarks(bundle, settings),
            findings: LintCommand.sorted(findings))
        Standard.output(json ? JSONText.of(report) : report.text)
        if report.refusesMore { throw CommandFailure(code: 1) }
    }

    // MARK: The bundle

    private func bundle(
        _ settings: PolicySettings, _ stateDirectory: String, _ now: UnixTime
    ) throws -> PolicyBundle {
        let bytes = try BundlePath.bytes(path.file)
        // One that can't be read has ended this command: what is in force couldn't be read.
        let kept = settings.remembered(try? StateFile<KeptBundle>(KeptBundle.fileName, in: stateDirectory).read())
        do throws(BundleError) {
            guard unsigned else { return try settings.verifier.verify(bytes, after: kept?.latest, at: now).bundle }
            guard let envelope = try BundleDocument(bytes).bundle else { throw .missing(.bundle) }
            let bundle = try PolicyBundle(envelope)
            guard bundle.expires > now else { throw .expired(.bundle, version: bundle.version, bundle.expires) }
            return bundle
        } catch {
            throw BundlePath.failure(path.file, error)
        }
    }

    /// The resulting configuration of this machine.
    private func snapshot(with bundle: PolicyBundle, in current: Snapshot) throws -> Snapshot {
        do throws(ConfigurationProblems) {
            return try Snapshot.load(
                current.files[0], trying: bundle, stateDirectory: current.stateDirectory,
                services: ConfigurationOptions.services(current.stateDirectory))
        } catch {
            Standard.error(error.description)
            throw CommandFailure(code: CommandFailure.configuration)
        }
    }

    private func remarks(_ bundle: PolicyBundle, _ settings: PolicySettings) -> [String] {
        let stage = RolloutStage.ofThisMachine
        let waits =
            stage.isReached(by: bundle.stage)
            ? nil : "it is for \(bundle.stage ?? 100) of 100 machines, and this one has place \(stage.place): it waits"
        return [settings.objection(to: bundle), waits].compactMap(\.self)
    }

    // MARK: Lint

    /// Findings about the bundle's lines; refusals are reported by host.
    private func lint(_ new: Snapshot, _ hosts: [RehearsedHost], _ now: UnixTime) -> [LintFinding] {
        let tries = hosts.compactMap { host in
            host.trial.ending.flatMap { ending in host.trial.entry.map { ($0, host.trial.host, ending) } }
        }
        let live = LintChains.findings(of: tries.filter { $0.0.action.isJudged })
            .filter { $0.rule != .refusedNow && $0.rule != .notChecked }
        return (LintEntries(snapshot: new, now: now).findings() + LintCommand.history(new, now) + live)
            .filter { $0.place.file.hasPrefix(BundleInForce.prefix) }
    }
}
