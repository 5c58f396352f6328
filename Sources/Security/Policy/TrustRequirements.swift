package import PinproxyTLS

/// Requirements besides the anchors, the name and the pins: per host, or in the `defaults` of the pin file.
///
/// | key                 | requires                                                                     |
/// |---------------------|------------------------------------------------------------------------------|
/// | `min_tls`           | TLS 1.3, where 1.2 is not enough                                             |
/// | `ocsp`              | a fresh OCSP response, stapled, that the leaf isn't revoked                  |
/// | `crl_files`         | that no certificate is on its issuer's list                                  |
/// | `ct_log_list`       | that the leaf is in public logs (Certificate Transparency)                   |
/// | `max_leaf_lifetime` | that the leaf's validity isn't longer                                        |
///
/// They hold in every mode; `enforcement: report` doesn't soften them.
package struct TrustRequirements: Sendable, Equatable {
    /// TLS 1.2 or 1.3.
    package var minimumTLS: TLSVersion
    package var stapling: OCSPStapling
    /// Nil: no check.
    package var revocationLists: RevocationLists?
    /// The logs with accepted timestamps; nil: no check.
    package var transparencyLogs: TransparencyLogs?
    /// In seconds, both ends counted (RFC 5280 section 4.1.2.5); nil for any.
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

    /// Lists and logs compare by identity, since their files change.
    package static func == (one: TrustRequirements, other: TrustRequirements) -> Bool {
        one.minimumTLS == other.minimumTLS && one.stapling == other.stapling
            && one.revocationLists === other.revocationLists && one.transparencyLogs === other.transparencyLogs
            && one.maximumLeafLifetime == other.maximumLeafLifetime
    }

    /// Pin file keys that require a verified chain; an optional staple doesn't.
    var keysThatNeedAChain: [String] {
        var keys: [String] = []
        if stapling == .require { keys.append("ocsp") }
        if revocationLists != nil { keys.append("crl_files") }
        if transparencyLogs != nil { keys.append("ct_log_list") }
        if maximumLeafLifetime != nil { keys.append("max_leaf_lifetime") }
        return keys
    }

    /// For a digest: bytes without line breaks.
    var key: [String] {
        [
            "\(minimumTLS)", stapling.rawValue, maximumLeafLifetime.map { "\($0)" } ?? "any",
            revocationLists?.digest.hex ?? "no lists", transparencyLogs?.digest.hex ?? "no logs",
        ]
    }
}

/// How stapled OCSP responses are used (RFC 6066 section 8).
package enum OCSPStapling: String, Sendable, Hashable, CaseIterable {
    case ignore
    /// A response must be good, and a "must staple" leaf (RFC 7633) must have one.
    case ifStapled = "if-stapled"
    /// Every leaf must have a good response.
    case require
}
