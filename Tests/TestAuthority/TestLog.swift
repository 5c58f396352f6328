import CPinproxyOpenSSL

/// A Certificate Transparency log (RFC 6962) that issues any promise requested.
public final class TestLog: Sendable {
    public let name: String
    let key: TestKey

    public init(_ name: String) throws {
        self.name = name
        key = try TestKey(.p256)
    }

    /// One timestamp to be made.
    public struct Promise: Sendable {
        let log: TestLog
        let time: Int64
        let isBroken: Bool

        /// - Parameter time: Unix seconds.
        public init(
            _ log: TestLog, at time: Int64 = CertificateTemplate.now - CertificateTemplate.day, isBroken: Bool = false
        ) {
            self.log = log
            self.time = time
            self.isBroken = isBroken
        }
    }

    /// A file in OpenSSL's form that lists the logs.
    public static func list(_ logs: [TestLog]) -> String {
        let sections = logs.enumerated().map { index, log in
            let base64 = HeldCertificate.pem(log.key.publicKeyDER, label: "X").split(separator: "\n").dropFirst()
                .dropLast()
            return "[log\(index)]\ndescription = \(log.name)\nkey = \(base64.joined())\n"
        }
        return "enabled_logs = \(logs.indices.map { "log\($0)" }.joined(separator: ", "))\n" + sections.joined()
    }

    /// Encoded timestamps for a certificate as it is: for the TLS extension or an OCSP response.
    public static func timestamps(_ promises: [Promise], for certificate: HeldCertificate) throws -> [[UInt8]] {
        let entry = [0, 0] + bigEndian(certificate.der.count, bytes: 3) + certificate.der
        return try promises.map { try $0.log.timestamp($0, entry: entry) }
    }

    /// SignedCertificateTimestampList: what the TLS extension carries.
    public static func list(_ timestamps: [[UInt8]]) -> [UInt8] {
        let all = timestamps.flatMap { bigEndian($0.count, bytes: 2) + $0 }
        return bigEndian(all.count, bytes: 2) + all
    }

    /// The extension for a certificate, given its body without it.
    static func certificateExtension(_ promises: [Promise], body: [UInt8], issuerKey: TestKey) throws -> [UInt8] {
        let entry = [0, 1] + digest(issuerKey.publicKeyDER) + bigEndian(body.count, bytes: 3) + body
        let timestamps = try promises.map { try $0.log.timestamp($0, entry: entry) }
        return DERWriter.sequence(
            DERWriter.identifier("1.3.6.1.4.1.11129.2.4.2"), DERWriter.octets(DERWriter.octets(list(timestamps))))
    }

    /// - Parameter entry: type of the entry, and the entry itself.
    private func timestamp(_ promise: Promise, entry: [UInt8]) throws -> [UInt8] {
        let time = Self.bigEndian(Int(promise.time) * 1000, bytes: 8)
        // Version 1, certificate_timestamp; at the end, no extensions.
        var signature = try key.sign([0, 0] + time + entry + [0, 0], digest: .sha256)
        if promise.isBroken { signature[signature.count - 1] ^= 1 }
        // SHA-256 with ECDSA.
        return [0] + Self.digest(key.publicKeyDER) + time + [0, 0, 4, 3] + Self.bigEndian(signature.count, bytes: 2)
            + signature
    }

    private static func digest(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256(bytes, bytes.count, &digest)
        return digest
    }

    private static func bigEndian(_ number: Int, bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
