/// The contents of a certificate to make. The three starting points are those of a good authority; a test changes the
/// one thing that it is about.
public struct CertificateTemplate: Sendable {
    /// Pairs of an attribute's object identifier and its text, most general first.
    public var subject: [(identifier: String, text: String)] = []
    public var dnsNames: [String] = []
    /// IPv4 or IPv6 in text.
    public var ipAddresses: [String] = []
    /// Unix seconds.
    public var notBefore: Int64
    public var notAfter: Int64
    /// RSA keys are ``TestKey/shared(_:number:)``; others are new.
    public var key: TestKey.Kind = .p256
    /// A key pair to use instead, as when a certificate is renewed.
    public var keyPair: TestKey?
    /// Digest of the issuer's signature.
    public var digest: TestKey.Digest = .sha256
    /// The number in the version field: 2 stands for version 3, and 0 for version 1.
    public var version = 2
    /// A SubjectPublicKeyInfo in place of the key pair's, which still signs.
    public var publicKeyDER: [UInt8]?
    /// The digest named outside the signed part, in place of the real one.
    public var claimedDigest: TestKey.Digest?
    /// nil: 20 random bytes.
    public var serial: [UInt8]?
    /// The serial INTEGER's contents byte for byte, in place of `serial`.
    public var serialContents: [UInt8]?
    public var basicConstraints: BasicConstraints = .leaf
    /// nil: no keyUsage.
    public var keyUsage: Set<KeyUsage>? = []
    /// Object identifiers; empty: no extendedKeyUsage.
    public var extendedKeyUsage: [String] = []
    public var subjectKeyIdentifier: KeyIdentifier = .right
    public var authorityKeyIdentifier: KeyIdentifier = .right
    /// A subjectAltName's contents written by the test, in place of the names above.
    public var subjectAltName: [UInt8]?
    /// Leaves out all extensions, whatever else is set here.
    public var omitsExtensions = false
    /// More extensions: object identifier, critical or not, contents.
    public var extensions: [(identifier: String, isCritical: Bool, contents: [UInt8])] = []
    /// Timestamps of logs for the certificate to contain (RFC 6962 section 3.3), made for it.
    public var timestamps: [TestLog.Promise] = []
    /// Replaces the signature.
    public var signature: [UInt8]?
    /// If true, the signature's last byte is wrong.
    public var breaksSignature = false

    public enum BasicConstraints: Sendable, Hashable {
        /// CA:FALSE.
        case leaf
        /// CA:TRUE, critical.
        case authority(pathLength: Int?)
        /// CA:TRUE that is not marked as critical.
        case uncriticalAuthority
        /// No such extension.
        case none
    }

    /// Bits of keyUsage (RFC 5280 section 4.2.1.3).
    public enum KeyUsage: Int, Sendable {
        case digitalSignature = 0
        case nonRepudiation = 1
        case keyEncipherment = 2
        case keyAgreement = 4
        case keyCertSign = 5
        case cRLSign = 6
    }

    public enum KeyIdentifier: Sendable, Hashable {
        /// SHA-1 of the key's bits; of the issuer's for the authority's identifier.
        case right
        case none
        case wrong
    }

    /// 1.3.6.1.5.5.7.3.1
    public static let serverAuth = "1.3.6.1.5.5.7.3.1"
    /// 1.3.6.1.5.5.7.3.2
    public static let clientAuth = "1.3.6.1.5.5.7.3.2"

    /// The clock of the tests: 2030-01-01 00:00:00 UTC. Templates are valid around it.
    public static let now: Int64 = 1_893_456_000
    public static let day: Int64 = 86_400

    public init(commonName: String? = nil) {
        notBefore = Self.now - 30 * Self.day
        notAfter = Self.now + 30 * Self.day
        if let commonName { self.commonName = commonName }
    }

    /// A self-signed authority, ten years around `now`.
    public static func root(_ commonName: String) -> CertificateTemplate {
        var template = authority(commonName, pathLength: nil)
        template.authorityKeyIdentifier = .right
        return template
    }

    /// An authority below another, ten years around `now`.
    public static func intermediate(_ commonName: String, pathLength: Int? = 0) -> CertificateTemplate {
        authority(commonName, pathLength: pathLength)
    }

    /// A TLS server's certificate for DNS names and addresses, sixty days around `now`.
    public static func leaf(_ dnsNames: String..., ipAddresses: [String] = []) -> CertificateTemplate {
        var template = CertificateTemplate(commonName: dnsNames.first ?? ipAddresses.first)
        template.dnsNames = dnsNames
        template.ipAddresses = ipAddresses
        template.keyUsage = [.digitalSignature]
        template.extendedKeyUsage = [serverAuth]
        return template
    }

    private static func authority(_ commonName: String, pathLength: Int?) -> CertificateTemplate {
        var template = CertificateTemplate(commonName: commonName)
        template.notBefore = now - 5 * 365 * day
        template.notAfter = now + 5 * 365 * day
        template.basicConstraints = .authority(pathLength: pathLength)
        template.keyUsage = [.keyCertSign, .cRLSign]
        return template
    }

    /// The subject's CN; setting it replaces the whole subject.
    public var commonName: String? {
        get { subject.first { $0.identifier == "2.5.4.3" }?.text }
        set { subject = newValue.map { [("2.5.4.3", $0)] } ?? [] }
    }

    /// This template with the same lifetime, centred on the instant: for peers that use the machine's clock.
    public func valid(around instant: Int64) -> CertificateTemplate {
        let half = (notAfter - notBefore) / 2
        return with {
            $0.notBefore = instant - half
            $0.notAfter = instant + half
        }
    }

    /// This template with changes, for one-line variations.
    public func with(_ change: (inout CertificateTemplate) -> Void) -> CertificateTemplate {
        var copy = self
        change(&copy)
        return copy
    }
}
