/// Why bytes are not the certificate or key that they were taken for.
package enum CertificateError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The DER is broken; the text is the reason.
    case malformed(String)
    /// Parsing it would cost too much. The text says why, of "it".
    case costly(String)
    /// The PEM around it is broken or holds nothing of use.
    case pem(PEMError)
    /// The block of a PEM file that begins at the line is no certificate.
    case block(number: Int, line: Int, reason: String)

    package var description: String {
        switch self {
        case .malformed(let reason): "not a certificate: \(reason)"
        case .costly(let reason): "the certificate is refused: \(reason)"
        case .pem(let error): error.description
        case .block(let number, let line, let reason):
            "line \(line): certificate \(number) in it is broken: \(reason)"
        }
    }

    /// What is wrong with one certificate.
    fileprivate var reason: String {
        switch self {
        case .malformed(let text), .costly(let text): text
        case .pem, .block: description
        }
    }

    init(_ fault: CertificateLimits.Fault) {
        self =
            switch fault {
            case .notDER: .malformed(fault.text)
            case .costly(let text): .costly(text)
            }
    }
}

extension Certificate {
    /// All certificates of a PEM file in order, at least one. Blocks of other kinds (keys) are passed over.
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
