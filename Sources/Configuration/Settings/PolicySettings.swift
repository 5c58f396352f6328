package import PinproxyBundles

/// Where this machine's policy comes from (`policy` in pinproxy.yaml): a signed bundle, fetched again and again.
package struct PolicySettings: Sendable, Equatable {
    /// The policy while no valid bundle is known: before the first one, or after the last one has expired.
    package enum OnExpiry: String, Sendable, CaseIterable {
        /// The last one, with warnings; the machine's own pin file until the first one comes.
        case keep
        /// Nothing: every host is denied.
        case deny
    }

    package let bundle: ServiceURL
    /// Of the root role, for the first bundle; afterwards the roots say.
    package let keys: [BundleKey]
    package let threshold: Int
    /// Between two looks.
    package let interval: Duration
    /// Of this machine.
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
