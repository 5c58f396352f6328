internal import PinproxyBundles
internal import PinproxySecurity
internal import PinproxyTLS

/// The contents of a bundle's file, for people and programs.
struct BundleReport: Encodable {
    struct Keys: Encodable {
        let keys: [String]
        let threshold: Int

        init(_ role: RoleKeys) {
            keys = role.keys.map(\.text)
            threshold = role.threshold
        }
    }

    /// The valid signatures of one part.
    struct Signatures: Encodable {
        /// The version of the root that lists the keys.
        let root: Int
        let threshold: Int
        let keys: [String]

        init(_ envelope: Envelope, _ role: BundleRole, by root: BundleRoot) {
            self.root = root.version
            threshold = root[role].threshold
            keys = envelope.signers(among: root[role].keys).map(\.text)
        }

        /// `2 of 2 signatures`
        var text: String { "\(keys.count) of \(Count(threshold, "signature"))" }
        var lines: [String] { keys.map { "  signed by \($0)" } }
    }

    struct Root: Encodable {
        let version: Int
        let expires: String
        let root: Keys
        let bundle: Keys
        let timestamp: Keys
        /// The signatures by its own keys.
        let signatures: Signatures
        /// By the keys of the root before it; nil: it is the first in the file.
        let formerSignatures: Signatures?

        var summary: String {
            let former = formerSignatures.map { "; \($0.text) by version \($0.root)" } ?? ""
            return "root version \(version), expires \(expires), \(signatures.text)\(former)"
        }

        var lines: [String] {
            [summary] + signatures.lines
                + [("root", root), ("bundle", bundle), ("timestamp", timestamp)].flatMap { name, role in
                    ["  \(name): \(role.threshold) of"] + role.keys.map { "    \($0)" }
                }
        }
    }

    struct File: Encodable {
        let path: String
        let bytes: Int
        let sha256: String
    }

    struct Bundle: Encodable {
        let version: Int
        let expires: String
        /// Empty: all machines.
        let groups: [String]
        let local: String
        /// The percentage of machines; nil: all.
        let stage: Int?
        let note: String?
        let sha256: String
        let files: [File]
        let signatures: Signatures?

        var audience: String {
            (groups.isEmpty ? "all machines" : "machines of \(groups.joined(separator: ", "))")
                + (stage.map { ", \($0) of 100" } ?? "")
        }

        var summary: String {
            "bundle version \(version), expires \(expires), for \(audience), "
                + "\(signatures?.text ?? "no root that says who signs"), sha256 \(sha256)"
        }

        var lines: [String] {
            var lines = [summary] + (signatures?.lines ?? [])
            if let note { lines.append("  note: \(note.printable(longest: .max))") }
            lines.append(
                local == LocalRule.any.rawValue
                    ? "  a machine's own pin file may weaken it (local: any)"
                    : "  a machine's own pin file may add entries and tighten (local: tighten)")
            return lines + files.map { "  \($0.sha256)  \($0.path.printable) (\(Count($0.bytes, "byte")))" }
        }
    }

    struct Timestamp: Encodable {
        let version: Int
        let expires: String
        let bundleVersion: Int
        let bundleSha256: String
        /// Whether it names the bundle in the file.
        let isCurrent: Bool
        let signatures: Signatures?

        var summary: String {
            "timestamp version \(version), expires \(expires), names \(isCurrent ? "the" : "another") bundle"
                + "\(isCurrent ? "" : " (version \(bundleVersion))"), "
                + (signatures?.text ?? "no root that says who signs")
        }

        var lines: [String] { [summary] + (signatures?.lines ?? []) }
    }

    let roots: [Root]
    let bundle: Bundle?
    let timestamp: Timestamp?

    /// Signatures are judged by the last root, which nothing vouches for here.
    init(_ document: BundleDocument) throws(BundleError) {
        var roots: [Root] = []
        var last: BundleRoot?
        for envelope in document.roots {
            let root = try BundleRoot(envelope)
            roots.append(
                Root(
                    version: root.version, expires: BundleTime.text(root.expires), root: Keys(root.root),
                    bundle: Keys(root.bundle), timestamp: Keys(root.timestamp),
                    signatures: Signatures(envelope, .root, by: root),
                    formerSignatures: last.map { Signatures(envelope, .root, by: $0) }))
            last = root
        }
        self.roots = roots
        let bundle = try document.bundle.map { envelope throws(BundleError) in try PolicyBundle(envelope) }
        self.bundle = bundle.map { bundle in
            Bundle(
                version: bundle.version, expires: BundleTime.text(bundle.expires), groups: bundle.groups,
                local: bundle.local.rawValue, stage: bundle.stage, note: bundle.note, sha256: bundle.digest,
                files: bundle.files.map {
                    File(path: $0.path, bytes: $0.bytes.count, sha256: SHA256Digest.of($0.bytes).hex)
                },
                signatures: document.bundle.flatMap { envelope in last.map { Signatures(envelope, .bundle, by: $0) } })
        }
        timestamp = try document.timestamp.map { envelope throws(BundleError) in
            let timestamp = try BundleTimestamp(envelope)
            return Timestamp(
                version: timestamp.version, expires: BundleTime.text(timestamp.expires),
                bundleVersion: timestamp.bundleVersion, bundleSha256: timestamp.bundleDigest,
                isCurrent: bundle?.version == timestamp.bundleVersion && bundle?.digest == timestamp.bundleDigest,
                signatures: last.map { Signatures(envelope, .timestamp, by: $0) })
        }
    }
}
