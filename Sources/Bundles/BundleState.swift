/// What was verified last. Kept, it protects from a rollback: what comes next is compared with it.
package struct BundleState: Sendable, Codable, Equatable {
    /// The root that decides who signs the next one.
    package let root: Envelope
    package let rootVersion: Int
    package let bundleVersion: Int
    /// SHA-256 of the bundle's payload, in hexadecimal.
    package let bundleDigest: String
    package let timestampVersion: Int
    /// In Unix seconds.
    package let timestampExpires: Int64

    /// The root, parsed. It is of this machine's own disk; what is damaged there must not pass for a root.
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
}
