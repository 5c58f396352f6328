package import Bundles
internal import FoundationEssentials

/// The bundle that this machine has accepted, as it is kept in the state directory: the file, and what was verified of
/// it. Anyone who can write there can write the pin file too.
package struct KeptBundle: Sendable, Codable, Equatable {
    package static let fileName = "policy.json"
    /// A file of 16 MiB in base64, and its root again.
    static let limit = 48 << 20

    /// The whole file, as it was fetched.
    package let bytes: [UInt8]
    package let state: BundleState
    /// Unix seconds. All its dates held then.
    package let accepted: Int64
    /// As the server has it; nil: none.
    package let etag: String?
    /// The keys that the configuration began with.
    fileprivate let trust: [String]

    package init(bytes: [UInt8], state: BundleState, accepted: Int64, etag: String?, by settings: PolicySettings) {
        self.bytes = bytes
        self.state = state
        self.accepted = accepted
        self.etag = etag
        trust = settings.trust
    }

    private enum CodingKeys: String, CodingKey { case bundle, state, accepted, etag, trust }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        bytes = [UInt8](try container.decode(Data.self, forKey: .bundle))
        state = try container.decode(BundleState.self, forKey: .state)
        accepted = try container.decode(Int64.self, forKey: .accepted)
        etag = try container.decodeIfPresent(String.self, forKey: .etag)
        trust = try container.decode([String].self, forKey: .trust)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Data(bytes), forKey: .bundle)
        try container.encode(state, forKey: .state)
        try container.encode(accepted, forKey: .accepted)
        try container.encodeIfPresent(etag, forKey: .etag)
        try container.encode(trust, forKey: .trust)
    }

    static func decode(_ bytes: [UInt8]) throws(Reason) -> KeptBundle {
        do {
            return try JSONDecoder().decode(KeptBundle.self, from: Data(bytes))
        } catch {
            throw Reason("it is not in the form that this version writes")
        }
    }
}

extension PolicySettings {
    fileprivate var trust: [String] { keys.map(\.text).sorted() + ["\(threshold)"] }

    /// Verifies an accepted bundle at the time of its acceptance. Its root may be much newer than the configured keys, and
    /// stays known while these are unchanged.
    package func verify(_ kept: KeptBundle) throws(BundleError) -> VerifiedBundle {
        try verifier.verify(kept.bytes, after: kept.trust == trust ? kept.state : nil, at: kept.accepted)
    }
}
