import PinproxyBundles

/// `policy.bundle`, its payloads, and how a verifier handles them.
enum BundleFiles {
    private static let now: Int64 = 1_800_000_000

    /// The seeds' private key, with bytes that are all 1. It signs the fuzzer's input, which is refused unread
    /// otherwise.
    private static let key: SigningKey? = try? SigningKey(
        pem: Array(
            """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VwBCIEIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB
            -----END PRIVATE KEY-----

            """.utf8))

    static func bundle(_ bytes: [UInt8]) {
        var choices = Choices(bytes, count: 1)
        switch choices.byte() % 4 {
        case 0: file(choices.input)
        case 1: root(choices.input)
        case 2: policy(choices.input)
        default: timestamp(choices.input)
        }
    }

    private static func file(_ bytes: [UInt8]) {
        guard var document = try? BundleDocument(bytes) else {
            require((try? verify(bytes)) == nil, "what can't be read isn't verified")
            return
        }
        let written = try? document.bytes()
        require(written.flatMap { try? BundleDocument($0) } == document, "a file reads as it was written")
        guard let key else { fatalError("the key of the seeds can't be read") }
        func sign(_ envelope: Envelope) -> Envelope {
            var envelope = envelope
            guard (try? envelope.sign(with: key)) != nil else { fatalError("the key of the seeds can't sign") }
            return envelope
        }
        document.roots = document.roots.map(sign)
        document.bundle = document.bundle.map(sign)
        document.timestamp = document.timestamp.map(sign)
        guard let signed = try? document.bytes(), let verified = try? verify(signed) else { return }
        check(verified.bundle)
        require(verified.root.expires > now && verified.bundle.expires > now, "what is verified hasn't expired")
        require(verified.timestampExpires > now, "the timestamp hasn't expired")
        let again = try? verify(signed, after: verified.state)
        require(again?.state == verified.state, "the same file follows itself")
    }

    private static func verify(_ bytes: [UInt8], after state: BundleState? = nil) throws(BundleError) -> VerifiedBundle
    {
        try BundleVerifier(keys: [key?.publicKey].compactMap(\.self), threshold: 1).verify(bytes, after: state, at: now)
    }

    private static func root(_ bytes: [UInt8]) {
        guard let root = try? BundleRoot(Envelope(.root, payload: bytes)) else { return }
        for role in BundleRole.allCases {
            require((1...root[role].keys.count).contains(root[role].threshold), "a threshold can be met")
            require(Set(root[role].keys.map(\.id)).count == root[role].keys.count, "no key is there twice")
        }
        require((try? BundleRoot(root.envelope)) == root, "a root reads as it was written")
    }

    private static func policy(_ bytes: [UInt8]) {
        guard let bundle = try? PolicyBundle(Envelope(.bundle, payload: bytes)) else { return }
        check(bundle)
        let written = try? PolicyBundle.envelope(
            version: bundle.version, expires: bundle.expires, groups: bundle.groups, files: bundle.files,
            local: bundle.local, stage: bundle.stage, note: bundle.note)
        let again = written.flatMap { try? PolicyBundle($0) }
        require(again?.files == bundle.files && again?.groups == bundle.groups, "a bundle reads as it was written")
    }

    private static func check(_ bundle: PolicyBundle) {
        require(bundle.files.contains { $0.path == PolicyBundle.pinFile }, "a bundle has a pin file")
        require(Set(bundle.files.map(\.path)).count == bundle.files.count, "no path is there twice")
        for file in bundle.files {
            require(BundleFile.objection(to: file.path) == nil, "a path is within the bundle")
            require(!file.path.split(separator: "/").contains(".."), "no path leads out of the bundle")
        }
    }

    private static func timestamp(_ bytes: [UInt8]) {
        guard let timestamp = try? BundleTimestamp(Envelope(.timestamp, payload: bytes)) else { return }
        require((try? BundleTimestamp(timestamp.envelope)) == timestamp, "a timestamp reads as it was written")
    }
}
