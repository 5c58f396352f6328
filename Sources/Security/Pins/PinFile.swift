import PinproxyTLS

extension Pin {
    /// Reads a pin from a file: one certificate or one public key, in PEM or DER.
    /// - Parameters:
    ///   - path: of a regular file.
    ///   - mode: `certificate` needs a certificate; `publicKey` takes its key.
    ///   - origin: the file as named in the pin file; the path if nil.
    /// - Throws: unless the file holds exactly one certificate or public key.
    public init(file path: String, for mode: PinningMode, origin: String? = nil) throws(PinError) {
        let name = origin ?? path
        let file: SmallFile
        do { file = try SmallFile.read(path) } catch { throw PinError(.unreadable(error), in: name) }
        try self.init(fileContents: file.bytes, for: mode, origin: name)
    }

    package init(fileContents bytes: [UInt8], for mode: PinningMode, origin: String) throws(PinError) {
        let contents: Contents
        do { contents = try Contents(bytes) } catch { throw PinError(error, in: origin) }
        let written = "file: \(origin)"
        switch (contents, mode) {
        case (.certificate(let certificate), .certificate):
            self.init(
                .certificate(certificate.sha256, certificate), origin: written, notAfter: certificate.notAfter)
        case (.certificate(let certificate), _):
            self.init(.spki(certificate.spkiSHA256), origin: written, notAfter: certificate.notAfter)
        case (.publicKey, .certificate):
            throw PinError(.keyInCertificateMode, in: origin)
        case (.publicKey(let key), _):
            self.init(.spki(key.spkiSHA256), origin: written)
        }
    }
}

private enum Contents {
    case certificate(Certificate)
    case publicKey(PublicKey)

    init(_ bytes: [UInt8]) throws(PinError.Reason) {
        guard bytes.contains(where: { $0 > 0x20 }) else { throw .emptyFile }
        let labels = PEM.labels(in: bytes)
        self = labels.isEmpty ? try Self.der(bytes) : try Self.pem(bytes, labels)
    }

    private static func pem(_ bytes: [UInt8], _ labels: [String]) throws(PinError.Reason) -> Contents {
        // A private key doesn't belong here, even beside its certificate.
        if labels.contains(where: { $0.hasSuffix("PRIVATE KEY") }) { throw .privateKey }
        let certificates = labels.filter { $0.hasSuffix("CERTIFICATE") }.count
        let keys = labels.filter { $0 == "PUBLIC KEY" }.count
        guard certificates + keys <= 1 else { throw .several(certificates: certificates, keys: keys) }
        if certificates == 1 {
            do { return .certificate(try Certificate(derOrPEM: bytes)) } catch { throw .broken("\(error)") }
        }
        if keys == 1 {
            do { return .publicKey(try PublicKey(pem: bytes)) } catch { throw .broken("\(error)") }
        }
        if labels.contains(where: { $0.hasSuffix("CERTIFICATE REQUEST") }) { throw .request }
        throw .otherPEM(labels[0])
    }

    /// The outer sequence begins with a version (private key), an algorithm (public key), a sequence that begins with
    /// [0] or a serial (certificate) or with version 0 (request).
    private static func der(_ bytes: [UInt8]) throws(PinError.Reason) -> Contents {
        do throws(CertificateError) { return .certificate(try Certificate(der: bytes)) } catch {
            if case .costly = error { throw .broken("\(error)") }
        }
        if let key = try? PublicKey(der: bytes) {
            // The parser stops at the key's end.
            guard key.der.count == bytes.count else { throw .broken("bytes follow the public key") }
            return .publicKey(key)
        }
        if DERPrefix.isSequence(of: 0x02, bytes) { throw .privateKey }
        throw .broken("neither PEM nor the DER of a certificate or public key")
    }
}

private enum DERPrefix {
    /// True for one whole SEQUENCE that begins with an element of the tag.
    static func isSequence(of tag: UInt8, _ bytes: [UInt8]) -> Bool {
        guard bytes.count > 2, bytes[0] == 0x30 else { return false }
        let octets = bytes[1] < 0x80 ? 0 : Int(bytes[1] & 0x7f)
        guard octets <= 4, bytes.count > 2 + octets else { return false }
        let length = octets == 0 ? Int(bytes[1]) : bytes[2..<2 + octets].reduce(0) { $0 << 8 | Int($1) }
        return bytes.count == 2 + octets + length && length > 0 && bytes[2 + octets] == tag
    }
}
