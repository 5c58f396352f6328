import Configuration
import EventLoop
import FoundationEssentials
import Glibc
import Logging
import Session
import Transport

/// What the control socket asks of the daemon.
extension ProxyDaemon {
    /// Opens the control socket. A proxy that can't have it serves all the same, and says so.
    func openControl(_ context: ProxyContext, _ upkeep: PinUpkeep) -> ControlSocket? {
        let path = ControlSocket.path(in: snapshot.stateDirectory)
        let daemon = ControlResources.Daemon(
            unreadiness: { [unowned self] in unreadiness },
            status: { [unowned self] in status(upkeep) },
            reload: { [unowned self] in reload() },
            learn: { upkeep.obey($0) })
        let tasks = TaskBoard(loop: loop, workers: workers, sessionCount: context.sessionCount)
        let resources = ControlResources(daemon: daemon, tasks: tasks)
        let session = LoopSession(
            loop: loop, slabs: SlabPool(), pool: UpstreamPool(), connector: upkeep.connector,
            index: context.sessionCount - 1, of: context.sessionCount)
        do throws(SystemError) {
            return try ControlSocket(path: path, loop: loop, session: session, logger: logger) { resources.answer($0, $1) }
        } catch {
            let cause = error.code == EEXIST ? "\(path) is there and is no socket: remove it" : "\(path): \(error)"
            logger.warning(
                "control.failed",
                metadata: [
                    "cause": "\(cause)",
                    "effect": "pinproxy reload, tasks and learn can't ask this proxy; SIGHUP makes it read its files",
                ])
            return nil
        }
    }

    /// Why it can't serve at the moment; nil if it can.
    private var unreadiness: String? {
        if isStopping { return "the proxy is stopping" }
        return network?.isolation.map { "this machine has no network: \($0)" }
    }

    private func status(_ upkeep: PinUpkeep) -> StatusReport {
        var report = StatusReport(process: getpid(), directory: snapshot.stateDirectory, history: upkeep.pinHistory)
        report.configuration = configuration
        report.listen = addresses
        report.clients = workers.reduce(0) { $0 + $1.load.count }
        report.reachability = network?.targets
        report.lastReload = lastReload
        report.learningUntil = upkeep.learnsUntil
        return report
    }

    /// What has become of a reload.
    func report(refused cause: String?) -> ReloadReport {
        lastReload = cause == nil ? "accepted" : "refused"
        return ReloadReport(process: getpid(), configuration: configuration, cause: cause)
    }

    /// The file that it reads, as an absolute path.
    private var configuration: String { URL(fileURLWithPath: snapshot.files.first ?? "").path }
}
