package import PinproxyTLS

/// A certificate or public key that must be in a host's chain, written as one of:
///
/// | text                                     | pins                                                    |
/// |------------------------------------------|---------------------------------------------------------|
/// | `sha256/<44 characters base64>`          | the public key (SPKI), as OkHttp and HPKP write it      |
/// | `sha256//<44 characters base64>`         | the same, as curl's `--pinnedpubkey` writes it          |
/// | `file: certs/backup.pem`                 | a certificate (its key, in public-key mode), or a key   |
/// | `cert-sha256/<64 digits, or base64>`     | a whole certificate, for certificate mode               |
/// | `AB:CD:…`, `sha256 Fingerprint=AB:CD:…`  | the same, as browsers and `openssl x509` show it        |
/// | `3 1 1 0d6f…`                            | a TLSA record as in DNS (RFC 6698)                      |
public struct Pin: Sendable, CustomStringConvertible {
    package enum Kind: Sendable, Hashable {
        /// The digest of a SubjectPublicKeyInfo.
        case spki(SHA256Digest)
        /// The digest of a certificate; with the certificate itself it can be an anchor.
        case certificate(SHA256Digest, Certificate?)
        /// A DNS record, which also restricts the depth.
        case record(TLSARecord)
    }

    package let kind: Kind
    /// Nil if equal to the description, as for nearly all pins.
    private let written: String?
    /// The pin as written: `sha256/…`, `file: certs/backup.pem`.
    public var origin: String { written ?? description }
    /// The end of the certificate that the pin was read from; the pin still matches later.
    package let notAfter: UnixTime?

    package init(_ kind: Kind, origin: String, notAfter: UnixTime? = nil) {
        self.kind = kind
        written = origin == Self.text(of: kind) ? nil : origin
        self.notAfter = notAfter
    }

    package var certificate: Certificate? {
        switch kind {
        case .certificate(_, let certificate): certificate
        case .record(let record) where record.selector == .certificate && record.matching == .exact:
            try? Certificate(der: record.data)
        case .spki, .record: nil
        }
    }

    /// The pin by its value, however it was written; parsing it gives an equal pin.
    public var description: String { Self.text(of: kind) }

    private static func text(of kind: Kind) -> String {
        switch kind {
        case .spki(let digest): "sha256/\(digest.base64)"
        case .certificate(let digest, _): "cert-sha256/\(digest.hex)"
        case .record(let record): "\(record)"
        }
    }

    /// Whether another certificate with the same key is refused.
    package var pinsWholeCertificate: Bool {
        switch kind {
        case .spki: false
        case .certificate: true
        case .record(let record): record.selector == .certificate
        }
    }
}

extension Pin: Hashable {
    /// Equal if they accept the same certificates.
    public static func == (left: Pin, right: Pin) -> Bool { left.key == right.key }

    /// Hashes what it accepts.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    /// Kind and digest as bytes, for digests of policies.
    var key: [UInt8] {
        switch kind {
        case .spki(let digest): [0] + digest.bytes
        case .certificate(let digest, _): [1] + digest.bytes
        case .record(let record):
            [2, record.usage.rawValue, record.selector.rawValue, record.matching.rawValue] + record.data
        }
    }
}

/// How a host's pins are used.
public enum PinningMode: String, Sendable, Hashable, CaseIterable {
    /// No pins: the trust anchors decide.
    case none
    /// Some key of the verified chain must equal a pinned key.
    case publicKey = "public-key"
    /// The pinned certificates are the only anchors, after the usual verification.
    case certificate
}

/// Where in the verified chain a pin may match.
public enum PinPosition: String, Sendable, Hashable, CaseIterable {
    /// Any certificate of the chain.
    case any
    /// The server's own certificate.
    case leaf
    /// The certificate that issued the leaf.
    case issuer
    /// The self-issued certificate at the chain's end.
    case root

    /// Whether it admits the certificate at a depth (0 is the leaf).
    func admits(depth: Int, of chain: VerifiedChain) -> Bool {
        switch self {
        case .any: true
        case .leaf: depth == 0
        case .issuer: depth == 1
        case .root: depth == chain.certificates.count - 1 && chain.anchor.isSelfIssued
        }
    }
}

/// The effect of a pin mismatch.
public enum Enforcement: String, Sendable, Hashable, CaseIterable {
    /// The connection is refused.
    case enforce
    /// The connection proceeds if trusted without the pins; the mismatch is reported.
    case report
}
