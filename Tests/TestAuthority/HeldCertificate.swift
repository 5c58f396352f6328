// TestAuthority: valid and invalid certificates and chains for tests, modelled on OkHttp's HeldCertificate. Independent
// of the modules that it helps to test.

import Glibc

/// A certificate with its private key and its issuers.
///
///     let root = try HeldCertificate.root()
///     let intermediate = try root.issue(.intermediate("Test Intermediate"))
///     let leaf = try intermediate.issue(.leaf("api.test").with { $0.notAfter = CertificateTemplate.now - 1 })
public final class HeldCertificate: Sendable {
    public let der: [UInt8]
    public let key: TestKey
    /// The issuers above, nearest first; the last one is the root. Empty if self-signed.
    public let issuers: [HeldCertificate]
    /// The subject as DER.
    let subjectName: [UInt8]

    private init(der: [UInt8], key: TestKey, issuers: [HeldCertificate], subjectName: [UInt8]) {
        self.der = der
        self.key = key
        self.issuers = issuers
        self.subjectName = subjectName
    }

    /// A self-signed certificate of any kind.
    public static func selfSigned(_ template: CertificateTemplate) throws -> HeldCertificate {
        let key = try template.keyPair ?? .shared(template.key)
        let name = CertificateEncoding.name(template.subject)
        let der = try CertificateEncoding.certificate(template, key: key, issuerName: name, issuerKey: key)
        return HeldCertificate(der: der, key: key, issuers: [], subjectName: name)
    }

    /// A self-signed authority.
    public static func root(_ commonName: String = "Test Root") throws -> HeldCertificate {
        try selfSigned(.root(commonName))
    }

    /// A certificate signed by this one's key, whether or not this one may sign it.
    public func issue(_ template: CertificateTemplate) throws -> HeldCertificate {
        // No two keys of a chain are the same.
        let key = try template.keyPair ?? .shared(template.key, number: issuers.count + 1)
        let der = try CertificateEncoding.certificate(
            template, key: key, issuerName: subjectName, issuerKey: self.key)
        return HeldCertificate(
            der: der, key: key, issuers: [self] + issuers, subjectName: CertificateEncoding.name(template.subject))
    }

    public var pem: String { Self.pem(der, label: "CERTIFICATE") }

    /// The private key as PKCS#8.
    public var keyPEM: String { key.privateKeyPEM }

    /// This certificate and its issuers without the root: what a server should send.
    public var chain: [HeldCertificate] { [self] + issuers.dropLast() }
    public var chainPEM: String { chain.map(\.pem).joined() }
    public var chainDER: [[UInt8]] { chain.map(\.der) }

    /// Writes `NAME.pem` (the chain) and `NAME.key` (0600) into the directory; returns their paths.
    @discardableResult
    public func write(to directory: String, name: String) throws -> (certificate: String, key: String) {
        let certificate = "\(directory)/\(name).pem"
        let key = "\(directory)/\(name).key"
        try Self.write(chainPEM, to: certificate, mode: 0o644)
        try Self.write(keyPEM, to: key, mode: 0o600)
        return (certificate, key)
    }

    /// A PEM block of 64-character lines.
    public static func pem(_ der: [UInt8], label: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text = Array("-----BEGIN \(label)-----\n".utf8)
        for (index, start) in stride(from: 0, to: der.count, by: 3).enumerated() {
            if index > 0, index % 16 == 0 { text.append(UInt8(ascii: "\n")) }
            let part = der[start..<min(start + 3, der.count)]
            let group = part.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - part.count))
            for position in 0..<4 {
                let character = alphabet[Int(group >> (18 - 6 * UInt32(position)) & 63)]
                text.append(position > part.count ? UInt8(ascii: "=") : character)
            }
        }
        return String(decoding: text, as: UTF8.self) + "\n-----END \(label)-----\n"
    }

    /// Writes or overwrites a file, with the mode.
    public static func write(_ text: String, to path: String, mode: UInt32) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw AuthorityFailure(what: "opening \(path)") }
        defer { close(descriptor) }
        fchmod(descriptor, mode)
        let bytes = Array(text.utf8)
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            throw AuthorityFailure(what: "writing \(path)")
        }
    }
}
