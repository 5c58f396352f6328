/// One `-----BEGIN …-----` block of a PEM file (RFC 7468).
struct PEMBlock {
    /// E.g. `CERTIFICATE`.
    let label: String
    /// Line of the BEGIN, counted from 1.
    let line: Int
    let der: [UInt8]
}

package enum PEMError: Error, Sendable, Hashable, CustomStringConvertible {
    case noBlock(wanted: String)
    /// A block without END.
    case notEnded(line: Int, label: String)
    case notBase64(line: Int, label: String)

    package var description: String {
        switch self {
        case .noBlock(let wanted): "it contains no \(wanted)"
        case .notEnded(let line, let label): "line \(line): \(label) begins here and has no END line"
        case .notBase64(let line, let label): "line \(line): the \(label) that begins here is not base64"
        }
    }
}

package enum PEM {
    static let certificateLabels: Set<String> = ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]

    /// Whether there is a BEGIN line: PEM rather than DER.
    static func looksLikePEM(_ bytes: [UInt8]) -> Bool {
        let begin = Array("-----BEGIN ".utf8)
        return bytes.split(separator: UInt8(ascii: "\n")).contains { $0.starts(with: begin) }
    }

    /// The label of each BEGIN line in order, e.g. `EC PRIVATE KEY`, even of truncated blocks.
    package static func labels(in bytes: [UInt8]) -> [String] {
        bytes.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") })
            .compactMap { label(of: $0, after: "-----BEGIN ") }
    }

    /// Re-encodes the certificates of a PEM file; empty if malformed.
    package static func certificates(in bytes: [UInt8]) -> [UInt8] {
        let certificates = ((try? blocks(in: bytes)) ?? []).filter { certificateLabels.contains($0.label) }
        return Array(certificates.map { text(of: $0.der, label: "CERTIFICATE") }.joined().utf8)
    }

    /// A block of 64-character lines, with its last newline.
    static func text(of der: [UInt8], label: String) -> String {
        var text = "-----BEGIN \(label)-----\n"
        var rest = Substring(Base64.encode(der))
        while !rest.isEmpty {
            text += rest.prefix(64) + "\n"
            rest = rest.dropFirst(64)
        }
        return text + "-----END \(label)-----\n"
    }

    /// All blocks in order. Text outside of blocks is a comment.
    static func blocks(in bytes: [UInt8]) throws(PEMError) -> [PEMBlock] {
        var blocks: [PEMBlock] = []
        var open: (label: String, line: Int)?
        var body: [UInt8] = []
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            if let label = label(of: line, after: "-----BEGIN ") {
                if let open { throw .notEnded(line: open.line, label: open.label) }
                open = (label, number)
                body.removeAll(keepingCapacity: true)
            } else if let begun = open {
                if label(of: line, after: "-----END ") == begun.label {
                    guard let der = Base64.decode(body) else {
                        throw .notBase64(line: begun.line, label: begun.label)
                    }
                    blocks.append(PEMBlock(label: begun.label, line: begun.line, der: der))
                    open = nil
                } else if !line.contains(UInt8(ascii: ":")) {
                    // A line with a colon is a header of the old encrypted form (RFC 1421).
                    body.append(contentsOf: line.lazy.filter { $0 > 0x20 })
                }
            }
        }
        if let open { throw .notEnded(line: open.line, label: open.label) }
        return blocks
    }

    private static func label(of line: ArraySlice<UInt8>, after prefix: StaticString) -> String? {
        let start = prefix.withUTF8Buffer { line.starts(with: $0) ? $0.count : nil }
        guard let start, line.count <= 80 else { return nil }
        var rest = line.dropFirst(start)
        while let last = rest.last, last <= 0x20 { rest.removeLast() }
        let dashes = Array("-----".utf8)
        guard rest.count > dashes.count, rest.suffix(dashes.count).elementsEqual(dashes) else { return nil }
        return String(decoding: rest.dropLast(dashes.count), as: UTF8.self)
    }
}
