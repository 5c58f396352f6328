/// What a certificate revocation list (RFC 5280 section 5) is to say. As it comes, it is good on the
/// tests' clock, and revokes nothing.
public struct RevocationListTemplate: Sendable {
    /// Serial number, big-endian; instant; number of the reason, if one is given.
    public var revoked: [(serial: [UInt8], date: Int64, reason: UInt8?)] = []
    public var thisUpdate = CertificateTemplate.now - CertificateTemplate.day
    /// nil: none.
    public var nextUpdate: Int64? = CertificateTemplate.now + CertificateTemplate.day
    /// Object identifier, critical or not, contents.
    public var extensions: [(identifier: String, isCritical: Bool, contents: [UInt8])] = []
    /// If true, the signature's last byte is wrong.
    public var breaksSignature = false

    public init() {}

    /// This template with changes, for one-line variations.
    public func with(_ change: (inout RevocationListTemplate) -> Void) -> RevocationListTemplate {
        var copy = self
        change(&copy)
        return copy
    }
}

extension HeldCertificate {
    /// A list signed by this certificate's key, as DER.
    public func revocationList(_ template: RevocationListTemplate = RevocationListTemplate()) throws -> [UInt8] {
        let algorithm = key.signatureAlgorithm(.sha256)
        let entries = template.revoked.map { entry in
            let reason = entry.reason.map {
                DERWriter.sequence(extensionDER("2.5.29.21", DERWriter.value(0x0A, [$0])))
            }
            return DERWriter.sequence(DERWriter.integer(entry.serial), DERWriter.time(entry.date), reason ?? [])
        }
        let keyIdentifier = DERWriter.sequence(DERWriter.value(0x80, CertificateEncoding.keyIdentifier(of: key)))
        let extensions =
            extensionDER("2.5.29.35", keyIdentifier) + extensionDER("2.5.29.20", DERWriter.integer(1))
            + template.extensions.flatMap { extensionDER($0.identifier, critical: $0.isCritical, $0.contents) }
        let body = DERWriter.sequence(
            DERWriter.integer(1), algorithm, subjectName, DERWriter.time(template.thisUpdate),
            template.nextUpdate.map { DERWriter.time($0) } ?? [],
            entries.isEmpty ? [] : DERWriter.sequence(entries.flatMap(\.self)),
            DERWriter.value(0xA0, DERWriter.sequence(extensions)))
        var signature = try key.sign(body, digest: .sha256)
        if template.breaksSignature { signature[signature.count - 1] ^= 1 }
        return DERWriter.sequence(body, algorithm, DERWriter.bits(signature))
    }

    private func extensionDER(_ identifier: String, critical: Bool = false, _ contents: [UInt8]) -> [UInt8] {
        DERWriter.sequence(
            DERWriter.identifier(identifier), critical ? DERWriter.yes : [], DERWriter.octets(contents))
    }
}
