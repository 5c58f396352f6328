import PinproxyTLS

/// Recognizes what an invalid pin was copied from, so that the error can say what to write.
enum MistakenPin {
    /// Nil: nothing that is known.
    static func reason(for text: String) -> PinError.Reason? { headerPins(in: text) ?? output(text) ?? colon(text) }

    /// The reason for a text without an algorithm; nil if it doesn't look like a digest.
    static func bareDigest(_ text: String) -> PinError.Reason? {
        if let digest = SHA256Digest(base64: text) ?? SHA256Digest(base64: text + "=") { return .noPrefix(digest) }
        if let digest = SHA256Digest(hex: text) { return .hexadecimal(digest) }
        return isNearlyADigest(text[...]) ? .characters(text.count) : nil
    }

    /// Base64 about as long as a digest is, but not as long: characters were lost, or added.
    static func isNearlyADigest(_ text: Substring) -> Bool {
        (38...50).contains(text.utf8.count) && text.utf8.count != 44 && text.utf8.allSatisfy(isBase64OrPadding)
    }

    private static func isBase64OrPadding(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "=") || Pin.isBase64(byte) }

    /// `pin-sha256="…"` as in Public-Key-Pins (RFC 7469 section 2.1.1), perhaps the whole header field.
    private static func headerPins(in text: String) -> PinError.Reason? {
        let parts = text.replacing("\"", with: " ").replacing(";", with: " ").replacing(",", with: " ").split(
            separator: " ")
        let name = "pin-sha256="
        guard text.lowercased().contains(name) else { return nil }
        // The value stands after the name, or after a quotation mark.
        let values = parts.enumerated().compactMap { index, part -> Substring? in
            guard part.lowercased().hasPrefix(name) else { return nil }
            return part.count > name.count ? part.dropFirst(name.count) : parts.dropFirst(index + 1).first
        }
        return .headerPins(values.compactMap { SHA256Digest(base64: $0) })
    }

    /// `sha256:…`, as OCI images and SSH keys write a digest (the latter without its `=`), and `SHA256: …`, which
    /// keytool prints of a certificate.
    private static func colon(_ text: String) -> PinError.Reason? {
        guard let match = text.prefixMatch(of: /(?i)sha-?256 *[:=] */) else { return nil }
        let value = text[match.range.upperBound...]
        if let digest = SHA256Digest(base64: value) ?? SHA256Digest(base64: value + "=") { return .spelling(digest) }
        return SHA256Digest(hex: value).map { .hexadecimal($0) }
    }

    /// What `openssl dgst`, `sha256sum` and `openssl x509 -fingerprint` print.
    private static func output(_ text: String) -> PinError.Reason? {
        if let end = text.firstRange(of: ")= ") {
            return .digestOutput(SHA256Digest(hex: text[end.upperBound...]))
        }
        if let equals = text.firstIndex(of: "="), text[..<equals].lowercased().hasSuffix(" fingerprint") {
            return .unknownAlgorithm(text[..<equals].split(separator: " ").first?.lowercased() ?? "")
        }
        let words = text.split(separator: " ")
        guard words.count == 2, let first = words.first, let digest = SHA256Digest(hex: first) else { return nil }
        return .digestOutput(digest)
    }
}
