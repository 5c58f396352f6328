import CPinproxyOpenSSL
import CPinproxyShims
import Glibc

/// An X.509 certificate as parsed, not verified. Properties are computed at each use.
package final class Certificate: @unchecked Sendable {
    // An X509 has an atomic reference count and a lock around its own caches; nothing here changes it.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    /// Adds a reference.
    init(sharing pointer: OpaquePointer) {
        X509_up_ref(pointer)
        self.pointer = pointer
    }

    deinit { X509_free(pointer) }

    /// Parses exactly these DER bytes, within ``CertificateLimits``.
    package init(der: [UInt8]) throws(CertificateError) {
        do { try CertificateLimits.check(der.span) } catch { throw CertificateError(error) }
        OpenSSLErrorQueue.clear()
        let parsed = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            guard let start = bytes.baseAddress else { return nil }
            var cursor: UnsafePointer<UInt8>? = start
            let end = start + bytes.count
            guard let certificate = d2i_X509(nil, &cursor, bytes.count) else { return nil }
            guard cursor == end else {
                X509_free(certificate)
                return nil
            }
            return certificate
        }
        guard let parsed else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        pointer = parsed
    }

    package var der: [UInt8] { encoded { i2d_X509(self.pointer, $0) } }

    /// The digest of the whole certificate, as `openssl x509 -fingerprint -sha256` prints it.
    package var sha256: SHA256Digest { SHA256Digest.of(der) }

    /// The SubjectPublicKeyInfo's DER encoding (RFC 5280 section 4.1.2.7).
    package var publicKeyDER: [UInt8] {
        encoded { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(self.pointer), $0) }
    }

    /// The digest of the SubjectPublicKeyInfo, as in a `sha256/` pin (RFC 7469 section 2.4).
    package var spkiSHA256: SHA256Digest { SHA256Digest.of(publicKeyDER) }

    package var publicKey: PublicKey {
        get throws(CertificateError) {
            guard let key = X509_get_pubkey(pointer) else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
            return PublicKey(owning: key)
        }
    }

    /// The subject on one line in the order of RFC 2253, e.g. `CN=api.example.com,O=Example`.
    package var subject: String { Self.line(X509_get_subject_name(pointer)) }

    package var issuer: String { Self.line(X509_get_issuer_name(pointer)) }

    /// The name of its file in a directory of certificates, without `.0`: openssl-rehash(1).
    package var subjectHash: String {
        let hash = String(UInt32(truncatingIfNeeded: X509_subject_name_hash(pointer)), radix: 16)
        return String(repeating: "0", count: 8 - hash.count) + hash
    }

    package var serialNumber: String {
        guard let number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(pointer), nil) else { return "" }
        defer { BN_free(number) }
        guard let text = BN_bn2hex(number) else { return "" }
        defer { CRYPTO_free(text, nil, 0) }
        return String(cString: text).lowercased()
    }

    /// First second of validity; never, if unreadable.
    package var notBefore: UnixTime { ASN1Time.seconds(X509_get0_notBefore(pointer)) ?? .max }

    /// Last second of validity (RFC 5280 section 4.1.2.5); long past, if unreadable.
    package var notAfter: UnixTime { ASN1Time.seconds(X509_get0_notAfter(pointer)) ?? .min }

    package var end: UnixTime { notAfter + 1 }

    /// Includes the first and the last second of validity.
    package func isValid(at time: UnixTime) -> Bool { notBefore <= time && time <= notAfter }

    package var isAuthority: Bool { X509_get_extension_flags(pointer) & UInt32(EXFLAG_CA) != 0 }

    /// Whether the subject is the issuer and the key identifiers don't contradict it; the signature isn't checked.
    package var isSelfIssued: Bool { X509_get_extension_flags(pointer) & UInt32(EXFLAG_SI) != 0 }

    /// Whether it is self-issued and its key may have signed it. The signature isn't checked.
    var isSelfSigned: Bool { X509_get_extension_flags(pointer) & UInt32(EXFLAG_SS) != 0 }

    /// Whether the other's key signed it. Nothing else is compared.
    package func isSigned(by issuer: Certificate) -> Bool {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        return X509_get0_pubkey(issuer.pointer).map { X509_verify(pointer, $0) == 1 } ?? false
    }

    package var subjectKeyIdentifier: [UInt8]? {
        guard let identifier = X509_get0_subject_key_id(pointer) else { return nil }
        return Self.bytes(of: identifier)
    }

    /// The key's kind and size for display: `EC P-256`, `RSA 2048`, `Ed25519`.
    package var keyDescription: String {
        guard let key = X509_get0_pubkey(pointer) else { return "unreadable key" }
        return KeyDescription.of(key)
    }

    private func encoded(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> [UInt8] {
        DER.bytes(encode)
    }

    static func line(_ name: OpaquePointer?) -> String {
        guard let name else { return "" }
        let bio = MemoryBIO()
        // RFC 2253 with control characters escaped, and letters beyond ASCII left readable.
        let flags = shim_XN_FLAG_RFC2253 & ~UInt(ASN1_STRFLGS_ESC_MSB)
        X509_NAME_print_ex(bio.pointer, name, 0, flags)
        return bio.text.unicodeScalars.reduce(into: "") { line, scalar in
            if isShown(scalar) {
                line.unicodeScalars.append(scalar)
            } else {
                // As OpenSSL writes control characters.
                for byte in String(scalar).utf8 { line += "\\" + Hexadecimal.encode([byte]).uppercased() }
            }
        }
    }

    /// False for line breaks and characters that affect how others look. A certificate's maker chooses its names.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }

    static func bytes(of string: UnsafePointer<ASN1_STRING>) -> [UInt8] {
        let count = Int(ASN1_STRING_length(string))
        return [UInt8](UnsafeRawBufferPointer(start: ASN1_STRING_get0_data(string), count: count))
    }
}

extension Certificate: Hashable {
    package static func == (left: Certificate, right: Certificate) -> Bool {
        left.pointer == right.pointer || X509_cmp(left.pointer, right.pointer) == 0
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(sha256) }
}

/// Dates of certificates, revocation lists and status responses.
enum ASN1Time {
    /// Nil for a missing or unreadable date.
    static func seconds(_ value: UnsafePointer<ASN1_STRING>?) -> UnixTime? {
        guard let value else { return nil }
        var parts = tm()
        guard ASN1_TIME_to_tm(value, &parts) == 1 else { return nil }
        return UnixTime(timegm(&parts))
    }
}
