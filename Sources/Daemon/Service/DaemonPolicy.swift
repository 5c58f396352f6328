import Configuration
import EventLoop
import Records
import Session

/// The signed policy of this machine, if pinproxy.yaml names one.
extension ProxyDaemon {
    func policyWatch(_ session: LoopSession) -> PolicyWatch {
        // unowned: only the loop calls it; the loop runs within run(), and run()'s caller keeps the daemon.
        let daemon = { [unowned self] in self }
        return PolicyWatch(
            loop: loop, session: session, logger: logger,
            daemon: .init(
                configuration: { daemon().configurationInForce }, unixTime: { WallClock.milliseconds() / 1000 },
                objection: { daemon().objection(to: $0) }, reload: { daemon().reload().cause }))
    }

    private func objection(to candidate: KeptBundle) -> String? {
        do throws(ConfigurationProblems) {
            _ = try Snapshot.load(
                snapshot.files.first ?? "", with: candidate, stateDirectory: snapshot.stateDirectory)
            return nil
        } catch {
            return error.problems.first { $0.severity == .error }?.description ?? error.description
        }
    }
}
