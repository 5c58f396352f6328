internal import ArgumentParser
internal import Foundation

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make the running proxy read its files again.",
        discussion: """
            The proxy reads the files that it was started with, and this prints which. If they are wrong it \
            keeps the configuration that it has, and the problems are printed here as check would; the exit \
            code is then 78. Exchanges in flight are not disturbed.

            The proxy is found by pinproxy.pid in its state directory; one that reads another file than \
            --config names is left alone. Run this as the user that runs the \
            proxy, or as root.

            Examples:
              pinproxy reload
              pinproxy reload --state-directory /var/lib/pinproxy
            """)

    /// How long an answer is waited for: reading 100,000 hosts takes seconds.
    private static let patience: Duration = .seconds(90)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let files = StateFiles(directory: try options.stateDirectory(for: try? options.file()))
        guard let proxy = try RunningProxy.find(files) else {
            throw CommandFailure(
                "no proxy is running with the state directory \(files.directory); "
                    + "start it with pinproxy run, or name its directory with --state-directory")
        }
        guard let before = proxy.reloadStatus() else {
            throw CommandFailure(
                "process \(proxy.process) doesn't say what becomes of a reload (it is just starting, or of another "
                    + "version), so nothing was asked of it")
        }
        if let named = options.config, !Self.isSame(named, before.configuration) {
            throw CommandFailure(
                "process \(proxy.process), which uses \(files.directory), reads \(before.configuration) and not \(named), "
                    + "so nothing was asked of it; leave --config out, or name the state directory of the proxy that is "
                    + "meant with --state-directory")
        }
        try proxy.send(SIGHUP)
        switch try answer(of: proxy, after: before) {
        case .accepted: Standard.output("reloaded: process \(proxy.process) has read \(before.configuration) again")
        case .refused(let problems):
            Standard.error(problems)
            throw CommandFailure(
                code: CommandFailure.configuration,
                message: "process \(proxy.process) refused the new \(before.configuration) and goes on with the "
                    + "configuration that it has")
        }
    }

    /// Whether two paths lead to one file.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        func resolved(_ path: String) -> String { URL(fileURLWithPath: path).resolvingSymlinksInPath().path }
        return resolved(path) == resolved(other)
    }

    /// Waits until the proxy has said what became of it.
    private func answer(of proxy: RunningProxy, after before: ReloadStatus) throws -> ReloadStatus.Outcome {
        let deadline = ContinuousClock.now + Self.patience
        while ContinuousClock.now < deadline {
            if let outcome = proxy.reloadStatus()?.outcome(after: before) { return outcome }
            guard proxy.isRunning else {
                throw CommandFailure("process \(proxy.process) ended before it answered; its log says more")
            }
            usleep(10_000)
        }
        throw CommandFailure(
            "process \(proxy.process) was told to read \(before.configuration) again, and hasn't said within "
                + "\(Self.patience) what became of it: it may still accept it; its log says more")
    }
}
