internal import PinproxyBundles
internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxyTLS

/// The differences of two bundles, by the resulting entries.
struct BundleChanges: Encodable {
    struct Side: Encodable {
        let version: Int
        let sha256: String
        let groups: [String]
        let stage: Int?

        init(_ bundle: PolicyBundle) {
            (version, sha256, groups, stage) = (bundle.version, bundle.digest, bundle.groups, bundle.stage)
        }

        var audience: String {
            (groups.isEmpty ? "all machines" : "machines of \(groups.joined(separator: ", "))")
                + (stage.map { ", \($0) of 100" } ?? "")
        }
    }

    /// An entry that only one of them has.
    struct Entry: Encodable {
        let match: String
        let action: String
        let pinning: String?
        let enforcement: String?
        /// `enforce_from`, `enforce_after` or `stage`, with its value.
        let rollout: String?
        let pins: [String]

        init(_ match: String, _ traits: EntryTraits) {
            self.match = match
            action = traits.values["action"] ?? ""
            pinning = traits.values["pinning"]
            enforcement = traits.values["enforcement"]
            rollout = traits.rollout
            pins = traits.pins
        }

        func lines(_ sign: String) -> [String] {
            let words = [action] + [pinning.map { "pinning \($0)" }, enforcement, rollout].compactMap(\.self)
            return ["\(sign) \(match.printable): \(words.joined(separator: ", "))"] + pins.map { "    \(sign) \($0)" }
        }
    }

    struct ChangedEntry: Encodable {
        let match: String
        let changes: [TraitChange]
        let pinsAdded: [String]
        let pinsRemoved: [String]

        /// Nil: nothing differs.
        init?(_ match: String, _ old: EntryTraits, _ new: EntryTraits) {
            self.match = match
            changes = TraitChange.between(old, new)
            pinsAdded = new.pins.filter { !old.pins.contains($0) }
            pinsRemoved = old.pins.filter { !new.pins.contains($0) }
            if changes.isEmpty, pinsAdded.isEmpty, pinsRemoved.isEmpty { return nil }
        }

        var lines: [String] {
            ["~ \(match.printable)"] + changes.map { "    \($0.text)" } + pinsAdded.map { "    + \($0)" }
                + pinsRemoved.map { "    - \($0)" }
        }
    }

    let old: Side
    let new: Side
    /// Changes of the bundle itself: version, audience, expiry, what machines may do, the note.
    let bundle: [TraitChange]
    /// Changes for hosts without an entry.
    let defaults: [TraitChange]
    let added: [Entry]
    let removed: [Entry]
    let changed: [ChangedEntry]
    /// Paths of files other than the pin file.
    let files: [TraitChange]

    init(_ old: (bundle: PolicyBundle, policy: PolicyFiles), _ new: (bundle: PolicyBundle, policy: PolicyFiles)) {
        self.old = Side(old.bundle)
        self.new = Side(new.bundle)
        bundle = Self.differences(old.bundle, new.bundle)
        defaults = TraitChange.between(EntryTraits(defaults: old.policy), EntryTraits(defaults: new.policy))
        let (before, after) = (Self.entries(old.policy), Self.entries(new.policy))
        added = after.filter { before[$0.key] == nil }.map { Entry($0.key, $0.value) }.sorted { $0.match < $1.match }
        removed = before.filter { after[$0.key] == nil }.map { Entry($0.key, $0.value) }.sorted { $0.match < $1.match }
        changed = before.compactMap { match, traits in after[match].flatMap { ChangedEntry(match, traits, $0) } }
            .sorted { $0.match < $1.match }
        files = Self.fileDifferences(old.bundle.files, new.bundle.files)
    }

    private static func entries(_ policy: PolicyFiles) -> [String: EntryTraits] {
        Dictionary(policy.hosts.entries.map { ($0.pattern.description, EntryTraits($0.value)) }) { first, _ in first }
    }

    private static func differences(_ old: PolicyBundle, _ new: PolicyBundle) -> [TraitChange] {
        let pairs: [(String, String?, String?)] = [
            ("version", "\(old.version)", "\(new.version)"),
            ("for", Side(old).audience, Side(new).audience),
            ("expires", BundleTime.text(old.expires), BundleTime.text(new.expires)),
            ("local", old.local.rawValue, new.local.rawValue),
            ("note", old.note, new.note),
        ]
        return pairs.filter { $0.1 != $0.2 }.map { TraitChange(key: $0.0, before: $0.1, after: $0.2) }
    }

    private static func fileDifferences(_ old: [BundleFile], _ new: [BundleFile]) -> [TraitChange] {
        func digests(_ files: [BundleFile]) -> [String: String] {
            Dictionary(files.map { ($0.path, "sha256 \(SHA256Digest.of($0.bytes).hex)") }) { first, _ in first }
        }
        var (before, after) = (digests(old), digests(new))
        before[PolicyBundle.pinFile] = nil
        after[PolicyBundle.pinFile] = nil
        return Set(before.keys).union(after.keys).sorted().filter { before[$0] != after[$0] }
            .map { TraitChange(key: $0, before: before[$0], after: after[$0]) }
    }

    var isEmpty: Bool {
        defaults.isEmpty && added.isEmpty && removed.isEmpty && changed.isEmpty && files.isEmpty
            && bundle.allSatisfy { $0.key == "version" }
    }

    var text: String {
        var lines = ["bundle version \(old.version) -> \(new.version), for \(new.audience)"]
        lines += bundle.filter { $0.key != "version" }.map { "  \($0.text)" }
        if !defaults.isEmpty { lines += ["~ hosts without an entry"] + defaults.map { "    \($0.text)" } }
        lines += added.flatMap { $0.lines("+") } + removed.flatMap { $0.lines("-") } + changed.flatMap(\.lines)
        lines += files.map { "file \($0.text)" }
        if isEmpty { lines.append("no machine notices a difference") }
        return lines.joined(separator: "\n")
    }
}
