/// The contents of a certificate revocation list (RFC 5280 section 5). By default it is valid on the tests' clock, and
/// revokes nothing.
public struct RevocationListTemplate: Sendable {
    /// Serial number, big-endian; instant; number of the reason, if any.
    public var revoked: [(serial: [UInt8], date: Int64, reason: UInt8?)] = []
    public var thisUpdate = CertificateTemplate.now - CertificateTemplate.day
    /// nil: none.
    public var nextUpdate: Int64? = CertificateTemplate.now + CertificateTemplate.day
    /// The keyIdentifier of its authorityKeyIdentifier. Without it and without `authority` there is no such extension.
    public var keyIdentifier = CertificateTemplate.KeyIdentifier.right
    /// The certificate with the issuer and serial number in its authorityKeyIdentifier.
    public var authority: HeldCertificate?
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
        let authority = try authorityKeyIdentifier(template)
        let extensions =
            (authority.isEmpty ? [] : extensionDER("2.5.29.35", DERWriter.sequence(authority)))
            + extensionDER("2.5.29.20", DERWriter.integer(1))
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

    private func authorityKeyIdentifier(_ template: RevocationListTemplate) throws -> [UInt8] {
        let identifier =
            CertificateEncoding.keyIdentifier(template.keyIdentifier, of: key).map { DERWriter.value(0x80, $0) } ?? []
        guard let authority = template.authority else { return identifier }
        let issuer = (authority.issuers.first ?? authority).subjectName
        return try identifier + DERWriter.value(0xA1, DERWriter.value(0xA4, issuer))
            + DERWriter.value(0x82, authority.serialContents())
    }

    private func extensionDER(_ identifier: String, critical: Bool = false, _ contents: [UInt8]) -> [UInt8] {
        DERWriter.sequence(
            DERWriter.identifier(identifier), critical ? DERWriter.yes : [], DERWriter.octets(contents))
    }
}
