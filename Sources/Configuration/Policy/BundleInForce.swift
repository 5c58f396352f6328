package import Bundles

/// The bundle that a configuration was made with.
package struct BundleInForce: Sendable, Equatable {
    package let version: Int
    /// SHA-256 of its payload, in hexadecimal.
    package let digest: String
    package let note: String?
    /// Unix seconds: the earliest end of its timestamp, its own, and its root's.
    package let expires: Int64
    package let local: LocalRule
    let files: [BundleFile]

    /// Begins the paths of its files. No path of the machine begins so.
    package static let prefix = "bundle:/"
    static let pinFile = prefix + PolicyBundle.pinFile

    init(_ verified: VerifiedBundle) {
        self.init(
            verified.bundle,
            expires: min(verified.timestampExpires, verified.bundle.expires, verified.root.expires))
    }

    init(_ bundle: PolicyBundle, expires: Int64) {
        version = bundle.version
        digest = bundle.digest
        note = bundle.note
        self.expires = expires
        local = bundle.local
        files = bundle.files
    }
}
