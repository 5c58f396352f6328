import CPinproxyOpenSSL

/// The contents of a new certificate, without issuer, key and signature.
package struct CertificateContents: Sendable {
    /// Big-endian and positive: 1 to 20 bytes, the first below 0x80 (RFC 5280 section 4.1.2.2).
    package var serialNumber: [UInt8]
    /// The whole subject; nil: empty, which requires a critical subjectAltName.
    package var commonName: String?
    package var notBefore: UnixTime
    package var notAfter: UnixTime
    package var extensions: [CertificateExtension]

    package init(
        serialNumber: [UInt8], commonName: String?, notBefore: UnixTime, notAfter: UnixTime,
        extensions: [CertificateExtension]
    ) {
        self.serialNumber = serialNumber
        self.commonName = commonName
        self.notBefore = notBefore
        self.notAfter = notAfter
        self.extensions = extensions
    }
}

package struct CertificateExtension: Sendable {
    package enum Kind: Sendable {
        case basicConstraints, keyUsage, extendedKeyUsage
        case subjectKeyIdentifier, authorityKeyIdentifier, subjectAltName, nameConstraints

        fileprivate var identifier: CInt {
            switch self {
            case .basicConstraints: NID_basic_constraints
            case .keyUsage: NID_key_usage
            case .extendedKeyUsage: NID_ext_key_usage
            case .subjectKeyIdentifier: NID_subject_key_identifier
            case .authorityKeyIdentifier: NID_authority_key_identifier
            case .subjectAltName: NID_subject_alt_name
            case .nameConstraints: NID_name_constraints
            }
        }
    }

    package let kind: Kind
    package let isCritical: Bool
    /// The DER inside the extension's OCTET STRING.
    package let value: [UInt8]

    package init(_ kind: Kind, isCritical: Bool = false, value: [UInt8]) {
        self.kind = kind
        self.isCritical = isCritical
        self.value = value
    }
}

extension Certificate {
    /// Makes and signs a certificate for a key, field by field: OpenSSL 3.0 takes 170 µs to read the key of a parsed
    /// certificate, and 6 µs to take one over from ``PrivateKey/generateP256()``.
    /// - Parameter issuer: the authority; nil: self-signed.
    package static func issue(
        _ contents: CertificateContents, for key: PublicKey, by issuer: Certificate?, signingWith issuerKey: PrivateKey
    ) throws(KeyError) -> Certificate {
        OpenSSLErrorQueue.clear()
        guard let pointer = X509_new() else { throw .failed(OpenSSLErrorQueue.takeReason()) }
        let certificate = Certificate(owning: pointer)
        guard X509_set_version(pointer, 2) == 1,  // version 3
            set(contents.serialNumber, in: X509_get_serialNumber(pointer)),
            setCommonName(contents.commonName, in: X509_get_subject_name(pointer)),
            X509_set_issuer_name(pointer, X509_get_subject_name(issuer?.pointer ?? pointer)) == 1,
            ASN1_TIME_set(X509_getm_notBefore(pointer), time_t(contents.notBefore)) != nil,
            ASN1_TIME_set(X509_getm_notAfter(pointer), time_t(contents.notAfter)) != nil,
            X509_set_pubkey(pointer, key.pointer) == 1,
            contents.extensions.allSatisfy({ add($0, to: pointer) }),
            issuerKey.withSigner({ X509_sign_ctx(pointer, $0) > 0 })
        else { throw .failed(OpenSSLErrorQueue.takeReason()) }
        return certificate
    }

    /// The DER inside an extension's OCTET STRING; nil without one.
    package func extensionValue(_ kind: CertificateExtension.Kind) -> [UInt8]? {
        let index = X509_get_ext_by_NID(pointer, kind.identifier, -1)
        return X509_EXTENSION_get_data(X509_get_ext(pointer, index)).map { Self.bytes(of: $0) }
    }

    private static func set(_ bytes: [UInt8], in string: UnsafeMutablePointer<ASN1_STRING>?) -> Bool {
        ASN1_STRING_set(string, bytes, CInt(bytes.count)) == 1
    }

    private static func setCommonName(_ text: String?, in name: OpaquePointer?) -> Bool {
        guard let text else { return true }
        let bytes = Array(text.utf8)
        return X509_NAME_add_entry_by_NID(name, NID_commonName, V_ASN1_UTF8STRING, bytes, CInt(bytes.count), -1, 0) == 1
    }

    private static func add(_ item: CertificateExtension, to certificate: OpaquePointer) -> Bool {
        guard let octets = ASN1_OCTET_STRING_new() else { return false }
        defer { ASN1_OCTET_STRING_free(octets) }
        guard set(item.value, in: octets),
            let made = X509_EXTENSION_create_by_NID(nil, item.kind.identifier, item.isCritical ? 1 : 0, octets)
        else { return false }
        defer { X509_EXTENSION_free(made) }
        return X509_add_ext(certificate, made, -1) == 1
    }
}
