package import PinproxyBundles

/// The source of this machine's policy (`policy` in pinproxy.yaml): a signed bundle, fetched periodically.
package struct PolicySettings: Sendable, Equatable {
    /// The policy while no valid bundle is known: before the first one, or after the last one has expired.
    package enum OnExpiry: String, Sendable, CaseIterable {
        /// The last one, with warnings; the machine's own pin file until the first one comes.
        case keep
        /// Nothing: every host is denied.
        case deny
    }

    package let bundle: ServiceURL
    /// Keys of the root role, for the first bundle; later ones are in the roots.
    package let keys: [BundleKey]
    package let threshold: Int
    /// The time between two fetches.
    package let interval: Duration
    /// The groups of this machine.
    package let groups: [String]
    package let onExpiry: OnExpiry

    package var verifier: BundleVerifier { BundleVerifier(keys: keys, threshold: threshold) }

    /// Why a bundle isn't for this machine, in human-readable form; nil: it is.
    package func objection(to bundle: PolicyBundle) -> String? {
        objection(toVersion: bundle.version, for: bundle.groups)
    }

    func objection(toVersion version: Int, for others: [String]) -> String? {
        guard !others.isEmpty, !others.contains(where: groups.contains) else { return nil }
        return "bundle version \(version) is for the groups \(others.joined(separator: ", ")), and this "
            + "machine is in \(groups.isEmpty ? "none" : groups.joined(separator: ", "))"
    }
}
