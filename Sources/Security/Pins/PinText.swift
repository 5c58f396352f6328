import PinproxyTLS

extension Pin {
    /// Reads a pin in any of the forms that ``Pin`` lists.
    public init(text: String, for mode: PinningMode) throws(PinError) {
        // Fast path: nearly all pins are this.
        if text.utf8.starts(with: "sha256/".utf8), let digest = SHA256Digest(base64: text.dropFirst(7)) {
            try self.init(.spki(digest), text: text, for: mode)
            return
        }
        let record: TLSARecord?
        do { record = try TLSARecord(text: text) } catch { throw PinError(.record(error), in: text) }
        if let record {
            try self.init(.record(record), text: text, for: mode)
            return
        }
        if let fingerprint = try Self.fingerprint(of: text) {
            try self.init(.certificate(fingerprint, nil), text: text, for: mode)
        } else {
            try self.init(.spki(try Self.publicKeyDigest(of: text)), text: text, for: mode)
        }
    }

    /// A well-formed pin, if the mode can use it.
    private init(_ kind: Kind, text: String, for mode: PinningMode) throws(PinError) {
        self.init(kind, origin: text)
        if case .certificate(let digest, nil) = kind, mode != .certificate {
            throw PinError(.fingerprintInKeyMode(digest), in: text)
        }
        if pinsWholeCertificate, mode != .certificate { throw PinError(.certificateInKeyMode, in: text) }
        if !pinsWholeCertificate, mode == .certificate { throw PinError(.keyInCertificateMode, in: text) }
    }

    /// The digest of a certificate; nil for other forms.
    private static func fingerprint(of text: String) throws(PinError) -> SHA256Digest? {
        let value: Substring
        if text.lowercased().hasPrefix("sha256 fingerprint=") {
            value = text[text.index(text.startIndex, offsetBy: 19)...]
        } else if text.hasPrefix("cert-sha256/") {
            value = text.dropFirst(12)
            if let digest = SHA256Digest(base64: value) { return digest }
        } else if text.dropFirst(2).first == ":" {
            value = text[...]
        } else {
            return nil
        }
        guard let digest = SHA256Digest(hex: value) else { throw PinError(.notAFingerprint, in: text) }
        return digest
    }

    private static func publicKeyDigest(of text: String) throws(PinError) -> SHA256Digest {
        if text.isEmpty { throw PinError(.empty, in: text) }
        if let reason = MistakenPin.reason(for: text) { throw PinError(reason, in: text) }
        guard let slash = text.firstIndex(of: "/") else {
            throw PinError(MistakenPin.bareDigest(text) ?? (looksLikeFile(text) ? .fileName : .noAlgorithm), in: text)
        }
        let algorithm = text[..<slash].lowercased()
        guard algorithm == "sha256" || algorithm == "sha-256" else {
            let isAlgorithm = ["sha1", "sha-1", "md5", "sha384", "sha512", "sha-384", "sha-512"].contains(algorithm)
            // A base64 digest may contain a slash, as paths do.
            throw PinError(
                isAlgorithm ? .unknownAlgorithm(algorithm) : MistakenPin.bareDigest(text) ?? .fileName, in: text)
        }
        var value = text[text.index(after: slash)...]
        guard algorithm == "sha256", text.hasPrefix("sha256/") else {
            throw PinError(.spelling(SHA256Digest(base64: value)), in: text)
        }
        // A digest itself may begin with a slash; otherwise it is curl's `sha256//`.
        if value.hasPrefix("/"), SHA256Digest(base64: value) == nil { value.removeFirst() }
        if let digest = SHA256Digest(base64: value) { return digest }
        throw PinError(defect(of: value), in: text)
    }

    /// Why a value is not the base64 of 32 bytes.
    private static func defect(of value: Substring) -> PinError.Reason {
        if let digest = SHA256Digest(hex: value) { return .hexadecimal(digest) }
        if value.isEmpty { return .wrongLength(0) }
        let body = value.utf8.prefix { $0 != UInt8(ascii: "=") }
        let padding = value.utf8.count - body.count
        guard value.utf8.suffix(padding).allSatisfy({ $0 == UInt8(ascii: "=") }), padding <= 2 else {
            return .notBase64
        }
        if body.contains(where: { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }),
            body.allSatisfy({ isBase64($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") })
        {
            return .base64URL
        }
        guard body.allSatisfy(isBase64) else { return .notBase64 }
        if padding == 0, let digest = SHA256Digest(base64: value + "=") { return .notPadded(digest) }
        if MistakenPin.isNearlyADigest(value) { return .characters(value.utf8.count) }
        guard body.count % 4 != 1 else { return .notBase64 }
        let bytes = body.count * 3 / 4
        if bytes != 32 { return .wrongLength(bytes) }
        // The last character has stray bits.
        return .strayBits
    }

    static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }

    private static func looksLikeFile(_ text: String) -> Bool {
        [".pem", ".crt", ".cer", ".der", ".pub", ".key"].contains { text.lowercased().hasSuffix($0) }
    }
}
