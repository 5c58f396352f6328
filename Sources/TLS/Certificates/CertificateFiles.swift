extension Certificate {
    /// All certificates of a PEM file in order, at least one. Other blocks (keys) are skipped.
    package static func all(inPEM bytes: [UInt8]) throws(CertificateError) -> [Certificate] {
        let blocks: [PEMBlock]
        do { blocks = try PEM.blocks(in: bytes) } catch { throw .pem(error) }
        var certificates: [Certificate] = []
        for block in blocks where PEM.certificateLabels.contains(block.label) {
            do {
                certificates.append(try Certificate(der: block.der))
            } catch {
                throw .block(number: certificates.count + 1, line: block.line, reason: error.reason)
            }
        }
        guard !certificates.isEmpty else { throw .pem(.noBlock(wanted: "certificate")) }
        return certificates
    }

    /// The first certificate of a PEM file, or the one of a DER file.
    package convenience init(derOrPEM bytes: [UInt8]) throws(CertificateError) {
        guard PEM.looksLikePEM(bytes) else {
            try self.init(der: bytes)
            return
        }
        let first = try Certificate.all(inPEM: bytes)[0]
        self.init(sharing: first.pointer)
        withExtendedLifetime(first) {}
    }

    /// The certificate as a PEM block of 64-character lines, with its last newline.
    package var pem: String { PEM.text(of: der, label: "CERTIFICATE") }
}
