internal import FoundationEssentials
package import PinproxyBundles

/// The bundle that this machine has accepted, as it is kept in the state directory: the file, and what was verified of
/// it. Anyone who can write there can write the pin file too.
package struct KeptBundle: Sendable, Codable, Equatable {
    package static let fileName = "policy.json"
    /// A file of 16 MiB in base64, and its root again.
    static let limit = 48 << 20

    /// The server's entity tag of the file that it sent last.
    package struct Tag: Sendable, Codable, Equatable {
        package let etag: String
        /// The server's URL: another server's tags have other meanings.
        package let url: String

        package init(etag: String, url: String) {
            self.etag = etag
            self.url = url
        }
    }

    /// The whole file.
    package let bytes: [UInt8]
    /// The verification state of that file.
    package let state: BundleState
    /// The last verified state: a later bundle may wait for its stage, or may not be put into force.
    package private(set) var latest: BundleState
    /// Unix seconds. All dates of the file held then.
    package let accepted: Int64
    package private(set) var tag: Tag?
    /// The keys that the configuration began with.
    fileprivate let trust: [String]

    /// - Parameter tag: nil: the server gave none.
    package init(bytes: [UInt8], state: BundleState, accepted: Int64, tag: Tag?, by settings: PolicySettings) {
        self.bytes = bytes
        self.state = state
        latest = state
        self.accepted = accepted
        self.tag = tag
        trust = settings.trust
    }

    /// This file, with a newer root or timestamp.
    package func knowing(_ latest: BundleState, tag: Tag?) -> KeptBundle {
        var kept = self
        (kept.latest, kept.tag) = (latest, tag)
        return kept
    }

    private enum CodingKeys: String, CodingKey { case bundle, state, latest, accepted, tag, trust }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        bytes = [UInt8](try container.decode(Data.self, forKey: .bundle))
        state = try container.decode(BundleState.self, forKey: .state)
        latest = try container.decode(BundleState.self, forKey: .latest)
        accepted = try container.decode(Int64.self, forKey: .accepted)
        tag = try container.decodeIfPresent(Tag.self, forKey: .tag)
        trust = try container.decode([String].self, forKey: .trust)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Data(bytes), forKey: .bundle)
        try container.encode(state, forKey: .state)
        try container.encode(latest, forKey: .latest)
        try container.encode(accepted, forKey: .accepted)
        try container.encodeIfPresent(tag, forKey: .tag)
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

    /// The policy of an accepted bundle, verified at the time of its acceptance. Its root may be much newer than the
    /// configured keys, and stays known while these are unchanged.
    package func inForce(_ kept: KeptBundle) throws(BundleError) -> BundleInForce {
        let known = kept.trust == trust ? kept.state : nil
        let verified = try verifier.verify(kept.bytes, after: known, at: kept.accepted)
        return BundleInForce(verified, confirmed: kept.latest)
    }

    /// The state of a bundle that was accepted by these keys; nil for other keys.
    package func remembered(_ kept: KeptBundle?) -> KeptBundle? {
        kept.flatMap { (try? inForce($0)) == nil ? nil : $0 }
    }
}
