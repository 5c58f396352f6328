internal import ArgumentParser
internal import PinproxyConfiguration
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

struct LintCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lint", _superCommandName: Pinproxy.name,
        abstract: "Warn of problems before they cause outages.",
        discussion: """
            Reads the configuration and the running proxy's counts (pins.json and rules.json in the state directory), \
            connects to the host of each entry (of a wildcard to hosts that the proxy has recorded, \
            see pinproxy learn), and prints each finding with its place, its rule and a fix: \
            FILE:LINE:COLUMN: warning: … [rule]. A note may be exactly what you intend. Exits 0, with \
            --strict 1 if there is a warning; 78 if the configuration is wrong.

            Rules:
              insecure             a switch that removes protection
              configuration        what check warns of, too
              public-suffix        a wildcard over hosts of different owners
              no-backup            one pin only
              shadowed             an entry that overrides a wildcard's pins or clients
                                   and is weaker
              weak-clients         an entry for programs of any user (note)
              entry-expires        expires is within 30 days, or past
              certificate-expires  the same of a pinned or a client certificate
              crl-expires          a list of crl_files is in the last quarter of its
                                   life (a week at most), or past
              bundle-expires       the policy bundle expires within 14 days, or its root
                                   within 30, or either is past
              refused-now          a request to the host would be refused
              pin-mismatch         the same where the pins are only reported
              pin-not-in-chain     a pin that matches nothing in the present chain (note)
              pin-out-of-position  a pin where position does not allow it to match
              no-revocation-list   crl_files has no list of an issuer of the present chain
                                   (note, where crl_files covers other issuers), or one
                                   that isn't valid for its issuer
              no-upgrades          session.http is [h2], and the host takes no WebSockets over
                                   HTTP/2 (note)
              authority            the local authority expires within 30 days or has
                                   expired, or clients refuse what it issues: name
                                   constraints, a path length, an issuer
              dead-pin             no match in 30 days while others matched
              report-only          an entry that only reports, and since when (note; a warning
                                   after 30 days), or until when (note)
              misses               a report-only entry that has missed since its last pin was
                                   added
              unused-rule          a rule that was applied to no request in 7 days or
                                   more (note)
              refused-responses    a rule that refused responses in the last 7 days, or
                                   would have if it were enforced
              can-be-enforced      a report-only entry with 100 matches in a row over
                                   7 days or more, or such a rule with 100 responses,
                                   none of them reported, or an entry whose enforce_from
                                   has passed (note)
              refusal-page         refusals are shown as pages, which programs other than
                                   browsers take for the origin's answers (note)
              shared-cache         shared: true where the proxy sends credentials or a client
                                   certificate: all users get the responses (note)
              reported-cache       a cache of an entry that only reports: nothing is stored
                                   of a server without a matching pin (note)
              not-checked          a host that could not be checked (note)
              history              counts that can't be read (note)

            --json prints a list of objects: rule, severity, file, line, column, entry, message, fix.

            Examples:
              pinproxy lint
              pinproxy lint --strict --offline
              pinproxy lint --at 2027-06-01
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Exit 1 if there is a warning.") var strict = false
    @Flag(help: "Connect to no host.") var offline = false
    @Flag(help: "Also list what was not checked.") var verbose = false
    @Flag(help: "Print JSON.") var json = false
    @Option(help: ArgumentHelp("As on that day: 2027-06-30 or 2027-06-30T12:00:00Z.", valueName: "date"))
    var at: Instant?

    /// How long the connections may take together; each step has the proxy's own timeouts besides.
    private static let timeForConnections = Duration.seconds(60)

    func run() throws {
        let snapshot = try options.load(at: at?.time)
        options.remarkChanges(since: snapshot)
        let now = at?.time ?? Clock.now
        var findings = LintEntries(snapshot: snapshot, now: now).findings() + Self.history(snapshot, now)
        if !offline {
            let live = try LintChains(
                snapshot: snapshot, history: Self.visited(snapshot, &findings), now: now, limit: Self.timeForConnections
            ).findings()
            findings += live.findings
            if verbose { findings += live.wildcards.map(Self.unasked) }
        }
        let sorted = Self.sorted(findings)
        Standard.output(json ? JSONText.of(sorted) : Self.text(sorted))
        if strict, sorted.contains(where: { $0.severity == .warning }) { throw CommandFailure(code: 1) }
    }

    static func history(_ snapshot: Snapshot, _ now: UnixTime) -> [LintFinding] {
        counted("pins", PinHistory.fileName, in: snapshot, empty: PinHistory()) {
            LintHistory(snapshot: snapshot, history: $0, now: now).findings()
        }
            + counted("rules", RuleHistory.fileName, in: snapshot, empty: RuleHistory()) {
                LintRules(snapshot: snapshot, history: $0, now: now).findings()
            }
    }

    static func counted<History: Codable & Sendable>(
        _ what: String, _ name: String, in snapshot: Snapshot, empty: History, _ findings: (History) -> [LintFinding]
    ) -> [LintFinding] {
        do throws(StateFileProblem) {
            return findings(try StateFile<History>(name, in: snapshot.stateDirectory).read() ?? empty)
        } catch {
            return findings(empty) + [
                LintFinding(
                    .history, .note, at: Place(file: error.path),
                    "the counts of the \(what) can't be read: \(error.cause)",
                    fix: "run lint as the user who runs the proxy, which puts a broken file aside at its next start")
            ]
        }
    }

    /// The hosts that were recorded; of another user's proxy they are not to be read.
    static func visited(_ snapshot: Snapshot, _ findings: inout [LintFinding]) -> ChainHistory {
        do throws(StateFileProblem) {
            return try ChainRecorder.file(in: snapshot.stateDirectory).read() ?? ChainHistory()
        } catch {
            findings.append(
                LintFinding(
                    .history, .note, at: Place(file: error.path),
                    "the recorded hosts can't be read, so wildcards are not checked: \(error.cause)",
                    fix: "run lint as the user who runs the proxy"))
            return ChainHistory()
        }
    }

    private static func unasked(_ entry: HostEntry) -> LintFinding {
        LintFinding(
            .notChecked, .note, of: entry, "a wildcard names no host to connect to, and none of its hosts was recorded",
            fix: "check one of its hosts (pinproxy explain HOST), or have them recorded (record: true)")
    }

    static func sorted(_ findings: [LintFinding]) -> [LintFinding] {
        func key(_ index: Int, _ place: Place) -> (String, Int, Int, Int) {
            (place.file, place.line ?? 0, place.column ?? 0, index)
        }
        return findings.enumerated()
            .sorted { key($0.offset, $0.element.place) < key($1.offset, $1.element.place) }.map(\.element)
    }

    private static func text(_ findings: [LintFinding]) -> String {
        func count(_ severity: LintFinding.Severity) -> String {
            "\(Count(findings.count { $0.severity == severity }, severity.rawValue))"
        }
        return (findings.map(\.text) + ["\(count(.warning)), \(count(.note))"]).joined(separator: "\n")
    }
}
