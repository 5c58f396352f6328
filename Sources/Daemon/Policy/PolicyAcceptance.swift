import Logging
import PinproxyBundles
import PinproxyClients
import PinproxyConfiguration
import PinproxyRecords
import PinproxyTLS

/// Takes a bundle that the server has sent, or refuses it.
extension PolicyWatch {
    func take(_ bytes: [UInt8], tag: KeptBundle.Tag?, _ settings: PolicySettings) {
        guard let snapshot = daemon.configuration()?.snapshot else { return }
        let file = file(of: snapshot)
        // Keys that a root removes stay removed, even if the bundle is refused.
        if let known = kept?.latest, case let following = settings.verifier.following(known, rootsOf: bytes),
            following != known, let problem = remember(kept?.knowing(following, tag: nil), in: file)
        {
            return failed(problem)
        }
        let verified: VerifiedBundle
        do throws(BundleError) {
            verified = try settings.verifier.verify(bytes, after: kept?.latest, at: daemon.unixTime())
        } catch {
            return failed("the bundle is refused: \(error)")
        }
        let bundle = verified.bundle
        if let objection = settings.objection(to: bundle) { return failed(objection) }
        let isSame = kept?.state.bundleDigest == bundle.digest
        // A new root holds for longer: the configuration knows its end.
        let hasNewRoot = isSame && kept?.state.rootVersion != verified.state.rootVersion
        if let kept, !hasNewRoot, isSame || !stage.isReached(by: bundle.stage) {
            if isSame { figures.waiting = nil } else { wait(for: bundle) }
            return renewDates(kept.knowing(kept.latest.seeing(verified.state), tag: tag), in: file, settings)
        }
        guard stage.isReached(by: bundle.stage) else {
            wait(for: bundle)
            return confirmed()
        }
        figures.waiting = nil
        let fresh = KeptBundle(
            bytes: bytes, state: verified.state, accepted: daemon.unixTime(), tag: tag, by: settings)
        // Unless it is kept, a restart would forget it, and accept an older one again.
        if let cause = daemon.renew(fresh, { self.remember(fresh, in: file) }) {
            return failed("bundle version \(bundle.version) can't be put into force: \(cause)")
        }
        logger.notice(
            "policy.accepted",
            metadata: [
                "version": .stringConvertible(bundle.version), "digest": "\(bundle.digest)",
                "url": "\(settings.bundle)", "note": "\(bundle.note ?? "")",
            ])
        confirmed()
    }

    /// - Returns: why it can't be stored.
    private func remember(_ fresh: KeptBundle?, in file: StateFile<KeptBundle>) -> String? {
        guard let fresh, fresh != kept else { return nil }
        do throws(StateFileProblem) { try file.write(fresh) } catch { return "\(error)" }
        kept = fresh
        return nil
    }

    /// Extends the dates of the current policy. Nothing is reread.
    private func renewDates(_ fresh: KeptBundle, in file: StateFile<KeptBundle>, _ settings: PolicySettings) {
        if let problem = remember(fresh, in: file) { return failed(problem) }
        if figures.expires != nil, let bundle = try? settings.inForce(fresh) { awaitEnd(bundle.expires) }
        confirmed()
    }

    private func wait(for bundle: PolicyBundle) {
        if figures.waiting != bundle.version {
            logger.notice(
                "policy.waiting",
                metadata: [
                    "version": .stringConvertible(bundle.version),
                    "cause": "it is for \(bundle.stage ?? 100) of 100 machines, and this one has place \(stage.place)",
                ])
        }
        figures.waiting = bundle.version
    }
}
