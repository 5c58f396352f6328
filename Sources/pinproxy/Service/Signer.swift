internal import ArgumentParser
internal import Glibc
internal import Logging
internal import PinproxyConfiguration
internal import PinproxyDaemon
internal import PinproxyEventLoop
internal import PinproxyRecords
internal import PinproxySecurity

struct Signer: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "signer", _superCommandName: Pinproxy.name,
        abstract: "Keep the local authority's key separate from the proxy.",
        discussion: """
            Makes the authority on its first start, and issues certificates over the socket that authority.signer \
            names, only for hosts that the configuration intercepts. As a separate service with its own user \
            (pinproxy-signer.service), it keeps the key from an attacker who has taken over the proxy.

            SIGHUP makes it read its files again, SIGTERM or Ctrl-C stops it. It reads the same configuration as the \
            proxy, without the files that only the proxy's user may read.

            Example:
              pinproxy signer --config /etc/pinproxy/pinproxy.yaml
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        CoreFiles.forbid()
        let file = try options.fileForProxy()
        // The service's signer has a separate state directory, and the proxy keeps the bundle.
        let policyDirectory = ConfigurationOptions.serviceState(of: file)
        let snapshot = try options.load(isProxy: true, readsSecrets: false, policyDirectory: policyDirectory)
        let inherited = ServiceNotifier.signerSocket()
        guard snapshot.authority.signer != nil || inherited != nil else {
            throw CommandFailure(
                code: CommandFailure.configuration,
                message: "\(file): authority.signer is not set, so the proxy has the key itself; write e.g. "
                    + "signer: unix:/run/pinproxy-signer.sock")
        }
        let journal = SystemJournal.send
        let output: LogOutput
        do {
            output = try .standardError(
                snapshot.log, journal: journal, isJournalUsual: journal != nil && SystemJournal.isStandardError)
        } catch {
            throw CommandFailure("the log can't be written: \(Run.message(of: error))")
        }
        defer { output.finish() }
        output.outliveCrashes()
        let logger = Logger(label: "pinproxy") { _ in EventLogHandler(output: output) }
        let directory = snapshot.stateDirectory
        do {
            let service = try SignerService(
                snapshot: snapshot, inherited: inherited, logger: logger, notices: Run.notices,
                load: { () throws(ConfigurationProblems) in
                    try Snapshot.load(
                        file, stateDirectory: directory, readsSecrets: false, policyDirectory: policyDirectory)
                })
            try service.run()
        } catch {
            throw CommandFailure(code: Run.code(of: error), message: Run.message(of: error))
        }
    }
}
