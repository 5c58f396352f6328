import PinproxyAddresses
import PinproxyTLS

/// The extensions of the authority and its leaves (RFC 5280 section 4.2.1), acceptable to X509_STRICT.
extension CertificateExtension {
    /// An authority that issues leaves and no other authorities: CA:TRUE, pathlen:0.
    static let issuesLeavesOnly = CertificateExtension(
        .basicConstraints, isCritical: true,
        value: DERWriter.sequence(DERWriter.value(.boolean, [0xff]), DERWriter.value(.integer, [0])))

    /// CA:FALSE, which DER leaves out.
    static let issuesNothing = CertificateExtension(
        .basicConstraints, isCritical: true, value: DERWriter.sequence())

    /// keyCertSign (bit 5) and cRLSign (bit 6).
    static let signsCertificates = CertificateExtension(
        .keyUsage, isCritical: true, value: DERWriter.value(.bitString, [1, 0b0000_0110]))

    /// digitalSignature (bit 0): all that ECDHE with an ECDSA key does.
    static let signsHandshakes = CertificateExtension(
        .keyUsage, isCritical: true, value: DERWriter.value(.bitString, [7, 0b1000_0000]))

    /// serverAuth, 1.3.6.1.5.5.7.3.1.
    static let authenticatesServers = CertificateExtension(
        .extendedKeyUsage,
        value: DERWriter.sequence(
            DERWriter.value(.objectIdentifier, [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01])))

    static func subjectKeyIdentifier(_ identifier: [UInt8]) -> CertificateExtension {
        CertificateExtension(.subjectKeyIdentifier, value: DERWriter.value(.octetString, identifier))
    }

    /// The issuer's subjectKeyIdentifier alone: issuer and serial would tie leaves to one certificate.
    static func authorityKeyIdentifier(_ identifier: [UInt8]) -> CertificateExtension {
        CertificateExtension(
            .authorityKeyIdentifier, value: DERWriter.sequence(DERWriter.value(.context0, identifier)))
    }

    /// Critical where the subject is empty, as RFC 5280 section 4.2.1.6 demands.
    static func subjectAltName(dns name: String, isCritical: Bool) -> CertificateExtension {
        CertificateExtension(
            .subjectAltName, isCritical: isCritical,
            value: DERWriter.sequence(DERWriter.value(.context2, Array(name.utf8))))
    }

    static func subjectAltName(ip address: IPAddress, isCritical: Bool) -> CertificateExtension {
        CertificateExtension(
            .subjectAltName, isCritical: isCritical,
            value: DERWriter.sequence(DERWriter.value(.context7, address.bytes)))
    }
}

extension PublicKey {
    /// The left-most 160 bits of a SHA-256 of the public key, as in RFC 7093 section 2.
    var keyIdentifier: [UInt8] { Array(spkiSHA256.bytes.prefix(20)) }
}
