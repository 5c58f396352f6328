/// The last verified versions. Stored, they protect from a rollback: the next bundle is compared with them.
package struct BundleState: Sendable, Codable, Equatable {
    /// The root that decides who signs the next one.
    package let root: Envelope
    package let rootVersion: Int
    package let bundleVersion: Int
    /// SHA-256 of the bundle's payload, in hexadecimal.
    package let bundleDigest: String
    package let timestampVersion: Int
    /// In Unix seconds: until then the server has said which bundle is the current one.
    package let timestampExpires: Int64

    /// Parses the root. It is from this machine's disk; a damaged one must not be taken for a root.
    func knownRoot() throws(BundleError) -> BundleRoot {
        let known: BundleRoot
        do throws(BundleError) { known = try BundleRoot(root) } catch { throw .state("\(error)") }
        guard known.version == rootVersion else { throw .state("the root is of version \(known.version)") }
        do throws(BundleError) {
            try known.requireSignatures(on: root, .root, version: known.version)
        } catch {
            throw .state("\(error)")
        }
        return known
    }

    /// When the known root expires, in Unix seconds; nil: it is damaged.
    package var rootExpires: Int64? { (try? knownRoot())?.expires }

    /// This state under a later root. What is known of a role is forgotten where that root leaves so few of its keys
    /// that nothing signed before is valid (TUF section 5.3.11).
    func under(_ later: BundleRoot, _ envelope: Envelope, insteadOf root: BundleRoot) -> BundleState {
        func kept(_ version: Int, _ role: BundleRole) -> Int {
            later[role].mayAccept(signaturesOf: root[role]) ? version : 0
        }
        return BundleState(
            root: envelope, rootVersion: later.version, bundleVersion: kept(bundleVersion, .bundle),
            bundleDigest: bundleDigest, timestampVersion: kept(timestampVersion, .timestamp),
            timestampExpires: timestampExpires)
    }

    /// This state, after another bundle was verified that isn't put into force here.
    package func seeing(_ other: BundleState) -> BundleState {
        BundleState(
            root: other.root, rootVersion: other.rootVersion, bundleVersion: bundleVersion, bundleDigest: bundleDigest,
            timestampVersion: other.timestampVersion, timestampExpires: other.timestampExpires)
    }
}
