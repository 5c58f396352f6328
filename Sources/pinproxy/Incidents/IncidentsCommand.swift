internal import ArgumentParser
internal import Glibc
internal import PinproxyDaemon
internal import PinproxyHTTPWire
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

struct IncidentsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "incidents",
        abstract: "Show refused certificates and pins: where, for whom, and how they differ.",
        discussion: """
            An incident is a chain that a host presented and that the policy refused, or only reported \
            (enforcement: report). It stays open, on the status page and in the metrics, until somebody acknowledges \
            it or the policy accepts the chain; it opens again if the chain comes from another address, or is refused \
            after the policy accepted or only reported it. Another chain is another incident.

            These commands ask the running proxy: run them as its user or as root. Without a running proxy they read \
            the state directory. An ID may be shortened to its first four digits or more.

            --json prints what the control socket answers; the --help of each subcommand describes it.

            Examples:
              pinproxy incidents
              pinproxy incidents show 3f9a
              pinproxy incidents export 3f9a
              pinproxy incidents ack 3f9a
              pinproxy pin api.example.com --via http://proxy.example.net:3128
            """,
        subcommands: [
            IncidentsListCommand.self, IncidentsShowCommand.self, IncidentsExportCommand.self, IncidentsAckCommand.self,
        ],
        defaultSubcommand: IncidentsListCommand.self)
}

struct IncidentOptions: ParsableArguments {
    @OptionGroup var configuration: ConfigurationOptions
    @Flag(help: "Print JSON.") var json = false

    func source() throws -> IncidentSource { IncidentSource(try configuration.stateFiles()) }
}

struct IncidentsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the incidents, the latest first.",
        discussion: """
            --json prints one object: incidents, a list with id, host, port, kind (pin or trust), cause, entry, \
            location, pins, first, last, refused and reported (connections), addresses (a list with address, \
            resolver, count, last), further_addresses, askers (a list with client, uid, user, program, unit, task, \
            count, last), further_askers, omitted, verified, unproven, tls_version, cipher, tls_group, verification, \
            merged, acknowledged (time, by, is_by_policy). Times are in Unix seconds.
            """)

    @OptionGroup var options: IncidentOptions
    @Flag(help: "Only unacknowledged incidents.") var open = false

    func run() throws {
        let all = try options.source().list()
        let shown = open ? IncidentList(all.incidents.filter(\.isOpen)) : all
        Standard.output(options.json ? JSONText.of(shown) : IncidentText.list(shown, at: Clock.now))
    }
}

struct IncidentsShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show an incident in full, and how it differs from the last matching chain.",
        discussion: """
            --json prints one object: incident, as list has it, with chain (PEM, the leaf first), timestamps and \
            ocsp_response (Base64); comparison, with kind (same-chain, other-cause, unproven, renewal, rotation, \
            unverified, other-issuer, inspection, self-signed, captive-portal, other-name, unknown, unreadable), \
            headline and lines; matched, the host's earlier chain that matched a pin, for comparison, with chain, leaf \
            (SHA-256), pin, first, last.
            """)

    @OptionGroup var options: IncidentOptions
    @Argument(help: ArgumentHelp("The incident's ID.", valueName: "id")) var id: String

    func run() throws {
        let account = IncidentAccount(try options.source().show(id))
        Standard.output(options.json ? JSONText.of(account) : IncidentText.text(account, at: Clock.now))
    }
}

struct IncidentsExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write an incident to one file for a colleague.",
        discussion: """
            The file is text: what show says, the chains as PEM, and at the end what show --json says. openssl finds \
            the certificates in it (openssl storeutl -certs FILE). It names users and programs of this machine. An \
            existing file is never overwritten.

            --json prints one object: file.
            """)

    @OptionGroup var options: IncidentOptions
    @Argument(help: ArgumentHelp("The incident's ID.", valueName: "id")) var id: String
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The file; pinproxy-incident-ID.txt if none is given.", valueName: "file"),
        completion: .file())
    var output: String?

    func run() throws {
        let account = IncidentAccount(try options.source().show(id))
        let path = output ?? "pinproxy-incident-\(account.incident.id).txt"
        do throws(FileProblem) {
            try NewFile.create(Array(IncidentText.file(account, at: Clock.now).utf8), at: path, mode: 0o600)
        } catch .system(EEXIST) {
            throw CommandFailure("\(path) is there already, and is not overwritten; name another file with --output")
        } catch {
            throw CommandFailure("\(path) can't be written: \(error)")
        }
        Standard.output(options.json ? JSONText.of(["file": path]) : path)
    }
}

struct IncidentsAckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ack", abstract: "Acknowledge incidents: they leave the status page and the alert.",
        discussion: """
            The policy doesn't change, and still refuses the chain. If it comes from another address, or is refused \
            after it was only reported, the incident is open again. The log says who acknowledged it \
            (incident.acknowledged).

            Each ID gets a line with its result. If one fails, the others are still acknowledged, and the exit status \
            is 1.

            --json prints a list of what show --json has as incident, of those that are acknowledged now.
            """)

    @OptionGroup var options: IncidentOptions
    @Argument(help: ArgumentHelp("The incidents' IDs.", valueName: "id")) var ids: [String]

    func run() throws {
        let source = try options.source()
        var done: [Incident] = []
        var failures = 0
        for id in ids {
            do {
                let (incident, wasOpen) = try source.acknowledge(id, at: Clock.now)
                done.append(incident)
                if !options.json { Standard.output(Self.outcome(incident, wasOpen: wasOpen)) }
            } catch let failure as CommandFailure {
                failures += 1
                Standard.error("not acknowledged: \(id.printable): \(failure.message ?? "it failed")")
            }
        }
        if options.json { Standard.output(JSONText.of(done)) }
        if failures > 0 { throw CommandFailure(code: 1) }
    }

    private static func outcome(_ incident: Incident, wasOpen: Bool) -> String {
        let name = "\(incident.id) \(incident.place.printable)"
        let by = incident.acknowledged.map { ", by \($0.by.printable)" } ?? ""
        return wasOpen ? "acknowledged: \(name)" : "acknowledged already: \(name)\(by)"
    }
}
