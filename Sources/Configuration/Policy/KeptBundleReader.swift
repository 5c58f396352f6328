internal import Glibc
internal import PinproxyBundles
internal import PinproxySecurity
internal import PinproxyTLS

/// Reads the bundle that this machine has accepted, and verifies it again: the keys of the configuration may have
/// changed, and dates pass.
struct KeptBundleReader {
    let settings: PolicySettings
    /// The directory of the kept bundle.
    let directory: String
    let findings: Findings
    let now: UnixTime

    /// - Parameter candidate: in place of the kept one.
    func read(_ candidate: KeptBundle?) -> BundleReading {
        let place = Place(file: "\(directory)/\(KeptBundle.fileName)")
        let kept: KeptBundle
        do throws(Reason) {
            if let candidate {
                kept = candidate
            } else if let found = try Self.kept(in: directory) {
                kept = found
            } else {
                return without("no bundle was accepted yet from \(settings.bundle)", at: place)
            }
        } catch {
            // Without it less could be pinned than a moment ago.
            findings.error(place, "the bundle that was accepted last can't be read: \(error.text)")
            return .none
        }
        let bundle: BundleInForce
        do throws(BundleError) {
            // Its dates held when it was accepted; whether they still do is asked below.
            bundle = try settings.inForce(kept)
        } catch {
            return without("the bundle that was accepted last can't be verified: \(error)", at: place)
        }
        if let objection = settings.objection(toVersion: bundle.version, for: bundle.groups) {
            return without(objection, at: place)
        }
        guard bundle.expires <= now else { return .bundle(bundle) }
        let cause = "bundle version \(bundle.version) expired at \(BundleTime.text(bundle.expires))"
        switch settings.onExpiry {
        case .deny: return without(cause, at: place)
        case .keep:
            let days = (now - bundle.expires) / 86400
            findings.warning(
                place,
                "\(cause), \(days == 0 ? "less than a day" : days == 1 ? "a day" : "\(days) days") ago, and stays in "
                    + "force (on_expiry: keep)")
            return .bundle(bundle)
        }
    }

    private func without(_ cause: String, at place: Place) -> BundleReading {
        switch settings.onExpiry {
        case .keep:
            findings.warning(place, "\(cause); the machine's own pin file decides (on_expiry: keep)")
            return .none
        case .deny:
            findings.warning(place, "\(cause); every host is denied (on_expiry: deny)")
            return .denied(cause)
        }
    }

    /// This file isn't edited, so it isn't copied, and its changes aren't reported.
    private static func kept(in directory: String) throws(Reason) -> KeptBundle? {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try TrustedDirectory(directory).read(KeptBundle.fileName, limit: KeptBundle.limit).bytes
        } catch .system(ENOENT) {
            return nil
        } catch {
            throw Reason("\(error)")
        }
        return try KeptBundle.decode(bytes)
    }
}

enum BundleReading {
    case bundle(BundleInForce)
    /// The machine's own pin file decides.
    case none
    /// Every host is denied; says why.
    case denied(String)
}
