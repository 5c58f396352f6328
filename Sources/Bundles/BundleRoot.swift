internal import PinproxySecurity
internal import PinproxySerialization

/// The keys of a role, and how many of them have to sign.
package struct RoleKeys: Sendable, Equatable {
    package static let limit = 64

    /// Distinct; at least ``threshold``.
    package let keys: [BundleKey]
    package let threshold: Int

    /// - Throws: what is wrong, in human-readable form.
    package init(_ keys: [BundleKey], threshold: Int) throws(RoleKeysProblem) {
        guard keys.count <= Self.limit else { throw .tooMany(keys.count) }
        var seen: Set<BundleKey> = []
        if let twice = keys.first(where: { !seen.insert($0).inserted }) { throw .twice(twice) }
        guard threshold >= 1 else { throw .threshold(threshold) }
        guard threshold <= keys.count else { throw .tooFew(keys: keys.count, threshold: threshold) }
        self.keys = keys
        self.threshold = threshold
    }

    /// Whether what was signed by the former keys may still be valid by these.
    func mayAccept(signaturesOf former: RoleKeys) -> Bool {
        keys.count(where: former.keys.contains) >= threshold
    }
}

package enum RoleKeysProblem: Error, Equatable, CustomStringConvertible {
    case tooMany(Int)
    case twice(BundleKey)
    case threshold(Int)
    case tooFew(keys: Int, threshold: Int)

    package var description: String {
        switch self {
        case .tooMany(let count): "\(count) keys are more than \(RoleKeys.limit)"
        case .twice(let key): "\(key.text) is there twice, and would count once"
        case .threshold(let threshold): "a threshold of \(threshold) asks for no signature"
        case .tooFew(let keys, let threshold): "a threshold of \(threshold) can't be met by \(Count(keys, "key"))"
        }
    }
}

/// Says which keys have which role. The next one is signed by the root keys of this one, and by its own.
package struct BundleRoot: Sendable, Equatable {
    package let version: Int
    package let expires: Int64
    package let root: RoleKeys
    package let bundle: RoleKeys
    package let timestamp: RoleKeys

    package subscript(role: BundleRole) -> RoleKeys {
        switch role {
        case .root: root
        case .bundle: bundle
        case .timestamp: timestamp
        }
    }

    package init(version: Int, expires: Int64, root: RoleKeys, bundle: RoleKeys, timestamp: RoleKeys) {
        self.version = version
        self.expires = expires
        self.root = root
        self.bundle = bundle
        self.timestamp = timestamp
    }

    package init(_ envelope: Envelope) throws(BundleError) {
        try envelope.require(.root)
        let fields = try Fields(envelope.payload, in: "root", keys: ["version", "expires", "roles"])
        version = try fields.integer("version")
        expires = try fields.time("expires")
        let roles = try fields.fields("roles", keys: BundleRole.allCases.map(\.rawValue))
        root = try Self.keys(of: .root, in: roles)
        bundle = try Self.keys(of: .bundle, in: roles)
        timestamp = try Self.keys(of: .timestamp, in: roles)
    }

    private static func keys(of role: BundleRole, in roles: Fields) throws(BundleError) -> RoleKeys {
        let fields = try roles.fields(role.rawValue, keys: ["keys", "threshold"])
        var keys: [BundleKey] = []
        for text in try fields.texts("keys", most: RoleKeys.limit) {
            do throws(BundleKeyError) { keys.append(try BundleKey(text)) } catch {
                throw fields.wrong("keys", "\(error)")
            }
        }
        let threshold = try fields.integer("threshold", in: 0...Fields.largest)
        do throws(RoleKeysProblem) {
            return try RoleKeys(keys, threshold: threshold)
        } catch {
            throw .malformed(part: fields.part, "\(error)")
        }
    }

    /// The unsigned envelope.
    package var envelope: Envelope {
        func json(_ role: RoleKeys) -> ParameterValue {
            ["keys": .array(role.keys.map { .string($0.text) }), "threshold": .number("\(role.threshold)")]
        }
        return Envelope(
            .root,
            payload: BundleDocument.text([
                "version": .number("\(version)"), "expires": .string(BundleTime.text(expires)),
                "roles": ["root": json(root), "bundle": json(bundle), "timestamp": json(timestamp)],
            ]))
    }

    func requireSignatures(
        on envelope: Envelope, _ role: BundleRole, version: Int
    ) throws(BundleError) {
        try self[role].requireSignatures(on: envelope, role, version: version, by: "root version \(self.version)")
    }
}

extension RoleKeys {
    /// - Parameter authority: who says that these keys count.
    func requireSignatures(
        on envelope: Envelope, _ role: BundleRole, version: Int, by authority: String
    ) throws(BundleError) {
        let valid = envelope.signers(among: keys).count
        guard valid >= threshold else {
            throw .signatures(role, version: version, by: authority, valid: valid, threshold: threshold)
        }
    }
}
