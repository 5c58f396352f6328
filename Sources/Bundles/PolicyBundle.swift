internal import PinproxySerialization
internal import PinproxyTLS

/// Whether a machine's own pin file may weaken what the bundle says.
package enum LocalRule: String, Sendable, Hashable, CaseIterable {
    /// It may add entries and tighten.
    case tighten
    case any
}

/// A pin file with the files that it names, for some machines and for some time.
package struct PolicyBundle: Sendable, Equatable {
    package static let groupsLimit = 64
    package static let noteLimit = 1000
    /// The pin file.
    package static let pinFile = "pins.yaml"

    package let version: Int
    /// In Unix seconds.
    package let expires: Int64
    /// The groups of machines that it is for; empty: all machines.
    package let groups: [String]
    /// ``pinFile`` is one of them.
    package let files: [BundleFile]
    package let local: LocalRule
    /// The percentage of machines that apply it; nil: all.
    package let stage: Int?
    package let note: String?
    /// SHA-256 of the payload, in hexadecimal.
    package let digest: String

    package init(_ envelope: Envelope) throws(BundleError) {
        try envelope.require(.bundle)
        let fields = try Fields(
            envelope.payload, in: "bundle", keys: ["version", "expires", "groups", "files", "local", "stage", "note"])
        version = try fields.integer("version")
        expires = try fields.time("expires")
        groups = try Self.groups(fields)
        files = try BundleFile.list(fields)
        let rule = try fields.optionalText("local", longest: 100) ?? LocalRule.tighten.rawValue
        guard let local = LocalRule(rawValue: rule) else {
            throw fields.wrong("local", "\"\(BundleError.shown(rule))\" is neither tighten nor any")
        }
        self.local = local
        stage = fields.optional("stage") == nil ? nil : try fields.integer("stage", in: 1...100)
        note = try fields.optionalText("note", longest: Self.noteLimit)
        digest = SHA256Digest.of(envelope.payload).hex
    }

    private static func groups(_ fields: Fields) throws(BundleError) -> [String] {
        let groups = try fields.texts("groups", most: groupsLimit)
        for group in groups where !isGroup(group) {
            throw fields.wrong(
                "groups",
                "\"\(BundleError.shown(group))\" is not the name of a group: letters, digits, \".\", \"_\" and \"-\", "
                    + "at most 64")
        }
        guard Set(groups).count == groups.count else { throw fields.wrong("groups", "a group is there twice") }
        return groups
    }

    /// Whether it is a name of a group: 1 to 64 of ASCII's letters and digits, `.`, `_`, `-`; a letter or digit first.
    package static func isGroup(_ text: String) -> Bool {
        func isAlphanumeric(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: false
            }
        }
        guard (1...64).contains(text.utf8.count), let first = text.utf8.first, isAlphanumeric(first) else {
            return false
        }
        return text.utf8.allSatisfy { isAlphanumeric($0) || "._-".utf8.contains($0) }
    }

    /// The payload of a new bundle, without signatures.
    /// - Throws: what of it a reader would refuse.
    package static func envelope(
        version: Int, expires: Int64, groups: [String] = [], files: [BundleFile], local: LocalRule = .tighten,
        stage: Int? = nil, note: String? = nil
    ) throws(BundleError) -> Envelope {
        let contents = files.map {
            ParameterValue.Pair(key: $0.path, value: .string(Base64.encode($0.bytes)))
        }
        var pairs: [ParameterValue.Pair] = [
            .init(key: "version", value: .number("\(version)")),
            .init(key: "expires", value: .string(BundleTime.text(expires))),
            .init(key: "groups", value: .array(groups.map { .string($0) })),
            .init(key: "files", value: .dictionary(contents)),
            .init(key: "local", value: .string(local.rawValue)),
        ]
        if let stage { pairs.append(.init(key: "stage", value: .number("\(stage)"))) }
        if let note { pairs.append(.init(key: "note", value: .string(note))) }
        let envelope = Envelope(.bundle, payload: BundleDocument.text(.dictionary(pairs)))
        _ = try PolicyBundle(envelope)
        return envelope
    }
}

/// A file of a bundle.
package struct BundleFile: Sendable, Equatable {
    package static let countLimit = 256
    /// Most bytes of all files together.
    package static let bytesLimit = 8 << 20
    package static let pathLimit = 255

    /// Below the directory of the pin file, as the pin file names it.
    package let path: String
    package let bytes: [UInt8]

    package init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }

    /// Why a path can't be in a bundle, in human-readable form; nil if it can. Only one spelling of a path is accepted:
    /// paths that differ name different files.
    package static func objection(to path: String) -> String? {
        guard (1...pathLimit).contains(path.utf8.count) else { return "a path has 1 to \(pathLimit) bytes" }
        guard !path.hasPrefix("/") else { return "an absolute path" }
        for part in path.split(separator: "/", omittingEmptySubsequences: false) {
            switch part {
            case "..": return "a path that leads out of the bundle (\"..\")"
            case "", ".": return "not a path in its shortest form (\"//\", \"/\" at the end, or \".\")"
            default: continue
            }
        }
        let isPlain = path.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
            default: true
            }
        }
        return isPlain ? nil : "a path with characters that can't be seen"
    }

    static func list(_ fields: Fields) throws(BundleError) -> [BundleFile] {
        guard case .dictionary(let pairs) = try fields.value("files") else {
            throw fields.wrong("files", "it is not a JSON object")
        }
        guard pairs.count <= countLimit else {
            throw fields.wrong("files", "it has \(pairs.count) files, more than \(countLimit)")
        }
        var files: [BundleFile] = []
        // Canonically equivalent strings, such as é in its two forms, count as one.
        var paths: Set<String> = []
        var left = bytesLimit
        for pair in pairs {
            let shown = BundleError.shown(pair.key)
            if let objection = objection(to: pair.key) { throw fields.wrong("files", "\"\(shown)\" is \(objection)") }
            guard paths.insert(pair.key).inserted else { throw fields.wrong("files", "\"\(shown)\" is there twice") }
            guard case .string(let text) = pair.value, let bytes = Base64.decode(text.utf8) else {
                throw fields.wrong("files", "\"\(shown)\" is not base64 with padding (RFC 4648 section 4)")
            }
            left -= bytes.count
            guard left >= 0 else { throw fields.wrong("files", "they have more than \(bytesLimit >> 20) MiB together") }
            files.append(BundleFile(path: pair.key, bytes: bytes))
        }
        if let both = paths.first(where: { path in directories(of: path).contains(where: paths.contains) }) {
            throw fields.wrong("files", "\"\(BundleError.shown(both))\" is below another file")
        }
        guard paths.contains(PolicyBundle.pinFile) else {
            throw fields.wrong("files", "\(PolicyBundle.pinFile) is missing")
        }
        return files
    }

    /// `a` and `a/b` of `a/b/c`.
    private static func directories(of path: String) -> [String] {
        path.indices.filter { path[$0] == "/" }.map { String(path[..<$0]) }
    }
}
