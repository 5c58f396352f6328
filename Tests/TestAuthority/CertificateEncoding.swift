import CPinproxyOpenSSL
import Glibc

/// A template as the DER of RFC 5280 section 4.1.
enum CertificateEncoding {
    static func certificate(
        _ template: CertificateTemplate, key: TestKey, issuerName: [UInt8], issuerKey: TestKey
    ) throws -> [UInt8] {
        let algorithm = issuerKey.signatureAlgorithm(template.digest)
        let serial =
            template.serialContents.map { DERWriter.value(0x02, $0) }
            ?? DERWriter.integer(template.serial ?? randomSerial())
        let version = template.version == 0 ? [] : DERWriter.value(0xA0, DERWriter.integer(template.version))
        func body(with timestamps: [UInt8]) -> [UInt8] {
            let extensions = DERWriter.value(
                0xA3, DERWriter.sequence(extensions(template, key: key, issuerKey: issuerKey), timestamps))
            return DERWriter.sequence(
                version, serial, algorithm, issuerName,
                DERWriter.sequence(DERWriter.time(template.notBefore), DERWriter.time(template.notAfter)),
                name(template.subject), template.publicKeyDER ?? key.publicKeyDER,
                template.omitsExtensions ? [] : extensions)
        }
        // Logs sign the certificate without their timestamps.
        let bare = body(with: [])
        let body =
            template.timestamps.isEmpty
            ? bare
            : body(with: try TestLog.certificateExtension(template.timestamps, body: bare, issuerKey: issuerKey))
        var signature = try template.signature ?? issuerKey.sign(body, digest: template.digest)
        if template.breaksSignature { signature[signature.count - 1] ^= 1 }
        let claimed = template.claimedDigest.map { issuerKey.signatureAlgorithm($0) } ?? algorithm
        return DERWriter.sequence(body, claimed, DERWriter.bits(signature))
    }

    static func name(_ attributes: [(identifier: String, text: String)]) -> [UInt8] {
        DERWriter.sequence(
            attributes.flatMap {
                DERWriter.set(DERWriter.sequence(DERWriter.identifier($0.identifier), DERWriter.utf8($0.text)))
            })
    }

    private static func extensions(_ template: CertificateTemplate, key: TestKey, issuerKey: TestKey) -> [UInt8] {
        var all: [UInt8] = []
        func add(_ identifier: String, critical: Bool = false, _ contents: [UInt8]) {
            all += DERWriter.sequence(
                DERWriter.identifier(identifier), critical ? DERWriter.yes : [], DERWriter.octets(contents))
        }
        switch template.basicConstraints {
        case .leaf: add("2.5.29.19", critical: true, DERWriter.sequence())
        case .authority(let pathLength):
            let limit = pathLength.map { DERWriter.integer($0) } ?? []
            add("2.5.29.19", critical: true, DERWriter.sequence(DERWriter.yes, limit))
        case .uncriticalAuthority: add("2.5.29.19", DERWriter.sequence(DERWriter.yes))
        case .none: break
        }
        if let usage = template.keyUsage, !usage.isEmpty { add("2.5.29.15", critical: true, bits(usage)) }
        if !template.extendedKeyUsage.isEmpty {
            add("2.5.29.37", DERWriter.sequence(template.extendedKeyUsage.flatMap { DERWriter.identifier($0) }))
        }
        if let identifier = keyIdentifier(template.subjectKeyIdentifier, of: key) {
            add("2.5.29.14", DERWriter.octets(identifier))
        }
        if let identifier = keyIdentifier(template.authorityKeyIdentifier, of: issuerKey) {
            add("2.5.29.35", DERWriter.sequence(DERWriter.value(0x80, identifier)))
        }
        if let names = template.subjectAltName ?? alternativeNames(template) {
            // Critical if nothing else names the subject (RFC 5280 section 4.2.1.6).
            add("2.5.29.17", critical: template.subject.isEmpty, names)
        }
        for (identifier, isCritical, contents) in template.extensions {
            add(identifier, critical: isCritical, contents)
        }
        return all
    }

    private static func bits(_ usage: Set<CertificateTemplate.KeyUsage>) -> [UInt8] {
        let byte = usage.reduce(UInt8(0)) { $0 | 0x80 >> UInt8($1.rawValue) }
        return DERWriter.bits([byte], unused: UInt8(byte.trailingZeroBitCount))
    }

    private static func alternativeNames(_ template: CertificateTemplate) -> [UInt8]? {
        let names =
            template.dnsNames.map { DERWriter.value(0x82, Array($0.utf8)) }
            + template.ipAddresses.map { DERWriter.value(0x87, address($0)) }
        return names.isEmpty ? nil : DERWriter.sequence(names.flatMap(\.self))
    }

    private static func address(_ text: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes.prefix(4)) }
        precondition(inet_pton(AF_INET6, text, &bytes) == 1, "not an address: \(text)")
        return bytes
    }

    static func keyIdentifier(_ kind: CertificateTemplate.KeyIdentifier, of key: TestKey) -> [UInt8]? {
        switch kind {
        case .none: return nil
        case .wrong: return [UInt8](repeating: 0xEE, count: 20)
        case .right: return keyIdentifier(of: key)
        }
    }

    /// Of the whole SubjectPublicKeyInfo: RFC 5280 section 4.2.1.2 leaves the method open.
    static func keyIdentifier(of key: TestKey) -> [UInt8] {
        let bytes = key.publicKeyDER
        var digest = [UInt8](repeating: 0, count: 20)
        SHA1(bytes, bytes.count, &digest)
        return digest
    }

    private static func randomSerial() -> [UInt8] {
        var bytes = (0..<20).map { _ in UInt8.random(in: 0...255) }
        bytes[0] = bytes[0] & 0x7F | 0x40
        return bytes
    }
}
