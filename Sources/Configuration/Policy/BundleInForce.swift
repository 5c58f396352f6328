package import PinproxyBundles

/// The bundle that a configuration was made with.
package struct BundleInForce: Sendable, Equatable {
    package let version: Int
    /// SHA-256 of its payload, in hexadecimal.
    package let digest: String
    package let note: String?
    let groups: [String]
    /// Unix seconds: the earliest end of its timestamp, its own, and its root's.
    package let expires: Int64
    /// Its own end, and its root's, which people have to renew in time.
    package let ownEnd: Int64
    package let rootEnd: Int64
    package let local: LocalRule
    let files: [BundleFile]

    /// Begins the paths of its files. No path of the machine begins so.
    package static let prefix = "bundle:/"
    static let pinFile = prefix + PolicyBundle.pinFile

    /// - Parameter latest: of a later timestamp or root, if one was verified.
    init(_ verified: VerifiedBundle, confirmed latest: BundleState) {
        self.init(
            verified.bundle, timestampEnd: max(verified.timestampExpires, latest.timestampExpires),
            rootEnd: max(verified.root.expires, latest.rootExpires ?? 0))
    }

    /// One that is looked at without timestamp and root.
    init(trial bundle: PolicyBundle) { self.init(bundle, timestampEnd: .max, rootEnd: .max) }

    private init(_ bundle: PolicyBundle, timestampEnd: Int64, rootEnd: Int64) {
        version = bundle.version
        digest = bundle.digest
        note = bundle.note
        groups = bundle.groups
        expires = min(timestampEnd, bundle.expires, rootEnd)
        (ownEnd, self.rootEnd) = (bundle.expires, rootEnd)
        local = bundle.local
        files = bundle.files
    }

    /// Files that are only looked at: nothing of the machine is beside them.
    init(draft files: [BundleFile]) {
        (version, digest, note, groups, local) = (0, "", nil, [], .any)
        (expires, ownEnd, rootEnd) = (.max, .max, .max)
        self.files = files
    }

    /// A path below ``prefix`` in its one spelling; nil: it leads out of the bundle.
    static func place(of path: String) -> String? {
        let parts = path.dropFirst(prefix.count).split(separator: "/").filter { $0 != "." }
        return parts.contains("..") ? nil : parts.joined(separator: "/")
    }
}
