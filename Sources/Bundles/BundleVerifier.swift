/// A bundle after its signatures, versions and dates were verified.
package struct VerifiedBundle: Sendable {
    package let bundle: PolicyBundle
    /// For the next verification.
    package let state: BundleState
    /// In Unix seconds; after it the bundle may be outdated without notice.
    package let timestampExpires: Int64
    /// The keys of each role.
    package let root: BundleRoot
}

/// Verifies `policy.bundle` as a client of TUF does (specification 1.0, section 5.3 and the following ones), reduced to
/// one file: root, timestamp, bundle, in this order.
///
/// - A new root is signed by the threshold of the root before it, and by its own. Only the last one must not have
///   expired.
/// - Root, timestamp and bundle never go back to a lower version, and one version never has two contents. The versions
///   of a role are forgotten where a new root leaves so few of its keys that nothing signed before holds any longer: so
///   keys that were stolen can't block updates for ever by a huge version (TUF section 5.3.11).
/// - The timestamp says which bundle is current, and expires soon: who shows an old file for ever is seen.
package struct BundleVerifier: Sendable {
    private let keys: [BundleKey]
    private let threshold: Int

    /// - Parameters:
    ///   - keys: trusted while no root is known: the first root in the file that they have signed begins the chain.
    ///   - threshold: how many of them.
    package init(keys: [BundleKey], threshold: Int) {
        self.keys = keys
        self.threshold = threshold
    }

    /// - Parameters:
    ///   - known: of the last verification; nil: there was none.
    ///   - now: in Unix seconds.
    package func verify(
        _ bytes: [UInt8], after known: BundleState?, at now: Int64
    ) throws(BundleError) -> VerifiedBundle {
        let document = try BundleDocument(bytes)
        let formerRoot = try known?.knownRoot()
        let (root, rootEnvelope) = try currentRoot(of: document, after: known, formerRoot)
        guard root.expires > now else { throw .expired(.root, version: root.version, root.expires) }

        let former = known.flatMap { known in formerRoot.map { (state: known, root: $0) } }
        func formerVersion(_ role: BundleRole, _ version: KeyPath<BundleState, Int>) -> Int? {
            former.flatMap { root[role].mayAccept(signaturesOf: $0.root[role]) ? $0.state[keyPath: version] : nil }
        }

        guard let envelope = document.timestamp else { throw .missing(.timestamp) }
        let timestamp = try BundleTimestamp(envelope)
        try root.requireSignatures(on: envelope, .timestamp, version: timestamp.version)
        if let known = formerVersion(.timestamp, \.timestampVersion), timestamp.version < known {
            throw .older(.timestamp, version: timestamp.version, known: known)
        }
        guard timestamp.expires > now else {
            throw .expired(.timestamp, version: timestamp.version, timestamp.expires)
        }

        guard let envelope = document.bundle else { throw .missing(.bundle) }
        let bundle = try PolicyBundle(envelope)
        try root.requireSignatures(on: envelope, .bundle, version: bundle.version)
        try timestamp.requireNames(bundle)
        if let version = formerVersion(.bundle, \.bundleVersion) {
            if bundle.version < version { throw .older(.bundle, version: bundle.version, known: version) }
            if bundle.version == version, bundle.digest != known?.bundleDigest {
                throw .changed(.bundle, version: version)
            }
        }
        guard bundle.expires > now else { throw .expired(.bundle, version: bundle.version, bundle.expires) }

        let state = BundleState(
            root: rootEnvelope, rootVersion: root.version, bundleVersion: bundle.version, bundleDigest: bundle.digest,
            timestampVersion: timestamp.version, timestampExpires: timestamp.expires)
        return VerifiedBundle(bundle: bundle, state: state, timestampExpires: timestamp.expires, root: root)
    }

    /// What is known once the roots of a file are verified, whatever else is wrong with it (TUF section 5.3.8).
    ///
    /// Keys that a root takes out are refused afterwards.
    package func following(_ known: BundleState, rootsOf bytes: [UInt8]) -> BundleState {
        guard let document = try? BundleDocument(bytes), let root = try? known.knownRoot(),
            let (later, envelope) = try? currentRoot(of: document, after: known, root), later.version > root.version
        else { return known }
        return known.under(later, envelope, insteadOf: root)
    }

    /// The last root of the file, reached from the known one or from the keys.
    private func currentRoot(
        of document: BundleDocument, after known: BundleState?, _ knownRoot: BundleRoot?
    ) throws(BundleError) -> (BundleRoot, Envelope) {
        var roots: [(root: BundleRoot, envelope: Envelope)] = []
        for envelope in document.roots {
            let root = try BundleRoot(envelope)
            if let last = roots.last?.root.version, root.version != last + 1 {
                throw .gap(known: last, next: root.version)
            }
            roots.append((root, envelope))
        }
        guard let last = roots.last else { throw .missing(.root) }
        var current: (root: BundleRoot, envelope: Envelope)
        if let known, let knownRoot {
            guard last.root.version >= knownRoot.version else {
                throw .older(.root, version: last.root.version, known: knownRoot.version)
            }
            if let same = roots.first(where: { $0.root.version == knownRoot.version }),
                same.envelope.payload != known.root.payload
            {
                throw .changed(.root, version: knownRoot.version)
            }
            current = (knownRoot, known.root)
        } else {
            current = try first(of: roots)
        }
        for (root, envelope) in roots where root.version > current.root.version {
            guard root.version == current.root.version + 1 else {
                throw .gap(known: current.root.version, next: root.version)
            }
            try current.root.requireSignatures(on: envelope, .root, version: root.version)
            try root.requireSignatures(on: envelope, .root, version: root.version)
            current = (root, envelope)
        }
        return current
    }

    /// The first root that the keys to begin with have signed: a machine may be set up with keys that are younger than
    /// the oldest root in the file.
    private func first(
        of roots: [(root: BundleRoot, envelope: Envelope)]
    ) throws(BundleError) -> (BundleRoot, Envelope) {
        let trusted: RoleKeys
        do throws(RoleKeysProblem) {
            trusted = try RoleKeys(keys, threshold: threshold)
        } catch {
            throw .keys("\(error)")
        }
        var failure: BundleError?
        for (root, envelope) in roots {
            do throws(BundleError) {
                try trusted.requireSignatures(on: envelope, .root, version: root.version, by: "the keys to begin with")
            } catch {
                failure = failure ?? error
                continue
            }
            try root.requireSignatures(on: envelope, .root, version: root.version)
            return (root, envelope)
        }
        throw failure ?? .missing(.root)
    }
}
