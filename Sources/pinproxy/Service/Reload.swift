internal import ArgumentParser
internal import PinproxyDaemon
internal import PinproxyHTTPWire

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload", _superCommandName: Pinproxy.name,
        abstract: "Reload the running proxy's configuration.",
        discussion: """
            The proxy reads the files that it was started with, and this prints which. If they are wrong it \
            keeps the configuration that it has, and the problems are printed here as check would; the exit \
            code is then 78. Exchanges in flight are not disturbed.

            The proxy is asked over control.sock in its state directory; one that reads a different file than --config \
            names isn't touched. Run this as the user that runs the proxy, or as root. SIGHUP does the same, and only \
            the log says how it went.

            Examples:
              pinproxy reload
              pinproxy reload --state-directory /var/lib/pinproxy
            """)

    /// How long to wait for an answer: reading 100,000 hosts takes seconds.
    private static let seconds = 90

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let files = try options.stateFiles()
        let proxy = try RunningProxy.require(files)
        let status: StatusReport = try proxy.ask(.get, "/status", within: Self.seconds)
        if let read = status.configuration { try options.requireSame(read, of: proxy, in: files) }
        let report: ReloadReport = try proxy.ask(.post, "/reload", accepting: 422, within: Self.seconds)
        guard let problems = report.cause else {
            return Standard.output("reloaded: process \(report.process) has read \(report.configuration) again")
        }
        Standard.error(problems)
        throw CommandFailure(
            code: CommandFailure.configuration,
            message: "process \(report.process) refused the new \(report.configuration) and keeps the "
                + "configuration that it has")
    }
}
