package import TLS

/// One certificate or public key that a host's chain has to hold.
///
/// **What it guards against.** Any of the hundred-odd authorities that a machine trusts can issue a
/// certificate for any name, by error or under pressure. A pin says which keys *this* host is known
/// to use; a certificate by anyone else is refused, however valid.
///
/// **How to find it.** Write a pin that is wrong on purpose, and let the refusal tell the right ones:
///
/// ```yaml
/// - match: api.example.com
///   pinning: public-key
///   pins: [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=]
/// ```
/// ```
/// $ curl -x http://127.0.0.1:7467 https://api.example.com/
/// Certificate pinning failure for api.example.com
///   The verified chain, as pins ready to paste:
///     - sha256/afwiKY3RxoMmLkuRW1l7QsPZTJPwDS2pdDROQjXw8ig=   # CN=api.example.com
///     - sha256/klO23nT2ehFDXCfx3eHTDRESMz3asj1muO+4aIdjiuY=   # CN=Example Issuing CA
///   Configured pins:
///     - sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
/// ```
///
/// Check them against a second source (another network, the operator) before pasting: the chain that
/// you see from here is the one that an attacker here would show.
///
/// **How it is written.**
///
/// | text                                     | pins                                                    |
/// |------------------------------------------|---------------------------------------------------------|
/// | `sha256/<44 characters base64>`          | the public key (SPKI), as OkHttp and HPKP write it      |
/// | `sha256//<44 characters base64>`         | the same, as curl's `--pinnedpubkey` writes it          |
/// | `file: certs/backup.pem`                 | a certificate (its key, in public-key mode), or a key   |
/// | `cert-sha256/<64 digits, or base64>`     | a whole certificate, for certificate mode               |
/// | `AB:CD:…`, `sha256 Fingerprint=AB:CD:…`  | the same, as browsers and `openssl x509` show it        |
/// | `3 1 1 0d6f…`                            | a ``TLSARecord`` as it stands in DNS                    |
///
/// **Why it is dangerous.** A pinned host whose operator changes keys without telling you is cut off
/// until someone edits the file. Pin an authority's key rather than a leaf's where that is strict
/// enough, always have a backup pin whose private key exists but isn't in use, and begin with
/// `enforcement: report`.
public struct Pin: Sendable, CustomStringConvertible {
    /// What is compared.
    package enum Kind: Sendable, Hashable {
        /// The digest of a SubjectPublicKeyInfo: survives a renewal with the same key.
        case spki(SHA256Digest)
        /// The digest of a whole certificate; only with the certificate itself can it be a trust anchor.
        case certificate(SHA256Digest, Certificate?)
        /// A record of DNS, which also says where in the chain it may match.
        case record(TLSARecord)
    }

    package let kind: Kind
    /// Nil: as the description has it, as nearly all pins are written.
    private let written: String?
    /// The pin as its owner wrote it: `sha256/…`, `file: certs/backup.pem`.
    public var origin: String { written ?? description }
    /// The end of the certificate that the pin was read from, a date to look after it: the pin still matches then.
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

    /// The pin by its value, however it was written; as text in the pin file it gives an equal pin.
    public var description: String { Self.text(of: kind) }

    private static func text(of kind: Kind) -> String {
        switch kind {
        case .spki(let digest): "sha256/\(digest.base64)"
        case .certificate(let digest, _): "cert-sha256/\(digest.hex)"
        case .record(let record): "\(record)"
        }
    }

    /// True if another certificate with the same key would not do.
    package var pinsWholeCertificate: Bool {
        switch kind {
        case .spki: false
        case .certificate: true
        case .record(let record): record.selector == .certificate
        }
    }
}

extension Pin: Hashable {
    /// Equal if they accept the same certificates, wherever they were written.
    public static func == (left: Pin, right: Pin) -> Bool { left.key == right.key }

    /// By what it accepts.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    /// Kind and digest as bytes: what policies are told apart by.
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
    /// The pinned certificates are the only anchors, besides the usual verification.
    case certificate
}

/// Where in the verified chain a pin may match.
public enum PinPosition: String, Sendable, Hashable, CaseIterable {
    /// Anywhere.
    case any
    /// The server's own certificate.
    case leaf
    /// The certificate that issued the leaf.
    case issuer
    /// The self-issued certificate at the chain's end.
    case root

    /// Whether the certificate at a depth (0 is the leaf) of a verified chain stands there.
    func admits(depth: Int, of chain: VerifiedChain) -> Bool {
        switch self {
        case .any: true
        case .leaf: depth == 0
        case .issuer: depth == 1
        case .root: depth == chain.certificates.count - 1 && chain.anchor.isSelfIssued
        }
    }
}

/// What a pin that doesn't match does.
public enum Enforcement: String, Sendable, Hashable, CaseIterable {
    /// The connection is refused.
    case enforce
    /// The connection goes on if it is trusted without the pins, and the mismatch is reported.
    case report
}
