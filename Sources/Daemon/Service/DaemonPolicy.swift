import Logging
import PinproxyClients
import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyRecords
import PinproxySecurity
import PinproxySession

/// The signed policy of this machine, if pinproxy.yaml names one.
extension ProxyDaemon {
    func policyWatch(_ session: LoopSession) -> PolicyWatch {
        // unowned: only the loop calls it; the loop runs within run(), and run()'s caller keeps the daemon.
        let daemon = { [unowned self] in self }
        return PolicyWatch(
            loop: loop, session: session, logger: logger,
            daemon: .init(
                configuration: { daemon().configurationInForce }, unixTime: { WallClock.milliseconds() / 1000 },
                renew: { daemon().renew(with: $0, keep: $1) }, deny: { daemon().denyAll(because: $0) }))
    }

    /// Puts the configuration in force into force again, with another bundle or since dates have passed. What people
    /// have changed in the files meanwhile waits for their reload.
    /// - Parameters:
    ///   - candidate: nil: the accepted one.
    ///   - keep: stores it, before it is in force; returns why it couldn't.
    /// - Returns: why nothing has changed; nil: it is in force.
    private func renew(with candidate: KeptBundle?, keep: () -> String?) -> String? {
        guard !isStopping, let leaves else { return "the proxy is stopping" }
        do throws(ConfigurationProblems) {
            let fresh = try snapshot.renewed(with: candidate, from: try copiesOfChanged())
            let configuration = try active(fresh) { leaves }
            if let cause = keep() { return cause }
            putRenewedIntoForce(configuration)
            warn(of: fresh)
            return nil
        } catch {
            return error.problems.first { $0.severity == .error }?.description ?? error.description
        }
    }

    private func denyAll(because cause: String) {
        guard !isStopping, snapshot.denial == nil, let leaves,
            let configuration = try? active(Snapshot(denying: cause, snapshot), { leaves })
        else { return }
        putRenewedIntoForce(configuration)
        logger.error("config.error", metadata: ["cause": "\(cause)", "effect": "every host is denied"])
    }

    /// The kept copy has the same files.
    func putRenewedIntoForce(_ configuration: ActiveConfiguration) {
        let isKept = keptGeneration.isOf(generation)
        putIntoForce(configuration)
        generation += 1
        if isKept { keptGeneration.wrote(generation) }
    }

    func active(
        _ fresh: Snapshot, _ leaves: () throws -> LeafCache
    ) throws(ConfigurationProblems) -> ActiveConfiguration {
        // The recorded enforcement holds, even if the file has been removed since.
        let fresh = upkeep.flatMap { fresh.enforcing($0.enforcedEntries) } ?? fresh
        do {
            return try ActiveConfiguration(fresh, leaves: try leaves(), logger: logger)
        } catch {
            let place = Place(file: fresh.files.first ?? "")
            throw ConfigurationProblems([Problem(.error, at: place, "can't be put into force: \(error)")])
        }
    }

    /// The files in force; nil: they are still what they were.
    private func copiesOfChanged() throws(ConfigurationProblems) -> ConfigurationFiles? {
        if fallback == nil, snapshot.isCurrent { return nil }
        let file = snapshot.files.first ?? ""
        guard fallback != nil || keptGeneration.isOf(generation),
            let copies = try? kept?.files(of: file)?.files
        else {
            throw ConfigurationProblems([
                Problem(.error, at: Place(file: file), "files have changed since they were read: run pinproxy reload")
            ])
        }
        return copies
    }
}
