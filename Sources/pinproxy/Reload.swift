internal import ArgumentParser
internal import Foundation

struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make the running proxy read its files again.",
        discussion: """
            The proxy reads the files that it was started with. If they are wrong it keeps the \
            configuration that it has, and the problems are printed here as check would; the exit \
            code is then 78. Exchanges in flight are not disturbed.

            The proxy is found by pinproxy.pid in its state directory.

            Examples:
              pinproxy reload
              pinproxy reload --state-directory /var/lib/pinproxy
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let files = StateFiles(directory: try options.stateDirectory(for: try? options.file()))
        guard let process = ProcessLock.holder(files.processID) else {
            throw CommandFailure(
                "no proxy is running with the state directory \(files.directory); "
                    + "start it with pinproxy run, or name its directory with --state-directory")
        }
        let before = ReloadStatus.read(files.reloadStatus).flatMap { $0.process == process ? $0.count : nil } ?? 0
        guard kill(process, SIGHUP) == 0 else {
            throw CommandFailure("process \(process) can't be signalled: \(systemReason())")
        }
        switch try answer(of: process, after: before, in: files) {
        case .accepted: Standard.output("reloaded")
        case .refused(let problems):
            Standard.error(problems)
            throw CommandFailure(
                code: CommandFailure.configuration,
                message: "the proxy has refused the new configuration and goes on with the one that it has")
        }
    }

    /// Waits until the proxy has said what became of it.
    private func answer(
        of process: pid_t, after count: Int, in files: StateFiles
    ) throws -> ReloadStatus.Outcome {
        let deadline = ContinuousClock.now + .seconds(15)
        while ContinuousClock.now < deadline {
            if let status = ReloadStatus.read(files.reloadStatus), status.process == process, status.count > count {
                return status.outcome
            }
            guard kill(process, 0) == 0 || errno == EPERM else {
                throw CommandFailure("the proxy has ended")
            }
            usleep(10_000)
        }
        throw CommandFailure("process \(process) was told, but hasn't answered within 15 seconds; its log says more")
    }
}
