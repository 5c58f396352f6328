package import TLS

/// What a server must satisfy besides the anchors, the name and the pins: for each host, or in the
/// `defaults` of the pin file for all that don't say otherwise.
///
/// | key                 | asks                                                                         |
/// |---------------------|------------------------------------------------------------------------------|
/// | `min_tls`           | TLS 1.3, where 1.2 is not enough                                             |
/// | `ocsp`              | a fresh word of the issuer that the leaf isn't revoked, stapled to the chain |
/// | `crl_files`         | that no certificate is on its issuer's list                                  |
/// | `ct_log_list`       | that the leaf stands in public logs (Certificate Transparency)               |
/// | `max_leaf_lifetime` | that the leaf's validity isn't longer                                        |
///
/// They hold for whoever is accepted at all; `enforcement: report` doesn't soften them, since they are
/// no pins.
package struct TrustRequirements: Sendable, Equatable {
    /// The oldest version spoken with the server: TLS 1.2 or 1.3.
    package var minimumTLS: TLSVersion
    package var stapling: OCSPStapling
    /// nil: no list is asked.
    package var revocationLists: RevocationLists?
    /// The logs whose timestamps count; nil: none are asked for.
    package var transparencyLogs: TransparencyLogs?
    /// In seconds, the first and the last counted (RFC 5280 section 4.1.2.5); nil for any.
    package var maximumLeafLifetime: Int64?

    package init(
        minimumTLS: TLSVersion = .tls12, stapling: OCSPStapling = .ifStapled,
        revocationLists: RevocationLists? = nil, transparencyLogs: TransparencyLogs? = nil,
        maximumLeafLifetime: Int64? = nil
    ) {
        self.minimumTLS = minimumTLS
        self.stapling = stapling
        self.revocationLists = revocationLists
        self.transparencyLogs = transparencyLogs
        self.maximumLeafLifetime = maximumLeafLifetime
    }

    /// Lists and logs are equal only to themselves: what their files say changes.
    package static func == (one: TrustRequirements, other: TrustRequirements) -> Bool {
        one.minimumTLS == other.minimumTLS && one.stapling == other.stapling
            && one.revocationLists === other.revocationLists && one.transparencyLogs === other.transparencyLogs
            && one.maximumLeafLifetime == other.maximumLeafLifetime
    }

    /// The keys in the pin file that demand a verified chain; an optional staple isn't among them.
    var keysThatNeedAChain: [String] {
        var keys: [String] = []
        if stapling == .require { keys.append("ocsp") }
        if revocationLists != nil { keys.append("crl_files") }
        if transparencyLogs != nil { keys.append("ct_log_list") }
        if maximumLeafLifetime != nil { keys.append("max_leaf_lifetime") }
        return keys
    }

    /// What tells these from others, as bytes without line breaks inside.
    var key: [String] {
        [
            "\(minimumTLS)", stapling.rawValue, maximumLeafLifetime.map { "\($0)" } ?? "any",
            revocationLists?.digest.hex ?? "no lists", transparencyLogs?.digest.hex ?? "no logs",
        ]
    }
}

/// What is made of OCSP responses that servers staple to their chain (RFC 6066 section 8).
package enum OCSPStapling: String, Sendable, Hashable, CaseIterable {
    case ignore
    /// A response must be good, and a leaf that says "must staple" (RFC 7633) must come with one.
    case ifStapled = "if-stapled"
    /// Every leaf must come with a good response.
    case require
}
