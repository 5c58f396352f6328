import CPinproxyOpenSSL
import Glibc

/// Rules of RFC 5280 and the baseline requirements that OpenSSL 3.0 doesn't check, even with X509_STRICT, for a chain
/// that OpenSSL has verified. Only an anchor's key is checked.
enum CertificateRules {
    static func failure(of chain: VerifiedChain, options: VerificationOptions) -> VerificationFailure? {
        for (depth, certificate) in chain.certificates.enumerated() {
            let isAnchor = depth == chain.certificates.count - 1
            var fault = KeyRules.fault(of: certificate)
            if fault == nil, !isAnchor { fault = common(certificate) ?? (depth == 0 ? leaf(certificate) : nil) }
            if fault == nil, depth == 0 {
                fault = handshakeUsage(certificate) ?? lifetime(of: certificate, maximum: options.maximumLeafLifetime)
            }
            if let fault { return VerificationFailure(fault, depth: depth, certificate: certificate) }
        }
        return nil
    }

    /// For any certificate below an anchor.
    private static func common(_ certificate: Certificate) -> RuleFault? {
        let version = X509_get_version(certificate.pointer) + 1
        if version != 3 { return .malformed("it is of version \(version), not 3") }
        if let fault = serialNumber(of: certificate) { return fault }
        let isLimited = X509_get_extension_flags(certificate.pointer) & UInt32(EXFLAG_XKUSAGE) != 0
        // OpenSSL takes the old "server gated cryptography" for serverAuth.
        if isLimited, X509_get_extended_key_usage(certificate.pointer) & UInt32(XKU_SSL_SERVER) == 0 {
            return .wrongPurpose("its extendedKeyUsage doesn't have serverAuth")
        }
        return nil
    }

    /// For the leaf, unless it is an anchor.
    private static func leaf(_ certificate: Certificate) -> RuleFault? {
        if certificate.isAuthority { return .wrongPurpose("it is an authority's, not a server's") }
        return AlternativeNameRules.fault(of: certificate)
    }

    /// A server signs the handshake in TLS 1.3 (RFC 8446 section 4.4.2.2) and the key exchange in TLS 1.2 (RFC 5246
    /// section 7.4.2, RFC 8422 section 5.3); OpenSSL also takes keys for agreement and encipherment. Holds for anchors.
    private static func handshakeUsage(_ certificate: Certificate) -> RuleFault? {
        // Without the extension all bits are set.
        X509_get_key_usage(certificate.pointer) & UInt32(KU_DIGITAL_SIGNATURE) != 0
            ? nil : .wrongPurpose("its keyUsage doesn't have digitalSignature")
    }

    /// RFC 5280 section 4.1.2.2: positive, and at most 20 octets.
    private static func serialNumber(of certificate: Certificate) -> RuleFault? {
        guard let number = X509_get0_serialNumber(certificate.pointer) else {
            return .malformed("it has no serial number")
        }
        let isNegative = ASN1_STRING_type(number) & V_ASN1_NEG != 0
        let bytes = Certificate.bytes(of: number)
        if isNegative || bytes.allSatisfy({ $0 == 0 }) { return .malformed("its serial number isn't positive") }
        // A set first bit needs a zero octet before it.
        let octets = bytes.count + (bytes[0] & 0x80 != 0 ? 1 : 0)
        return octets > 20 ? .malformed("its serial number has \(octets) octets, and at most 20 are allowed") : nil
    }

    /// RFC 5280 section 4.1.2.5 counts the first and the last second.
    private static func lifetime(of certificate: Certificate, maximum: Int64?) -> RuleFault? {
        guard let maximum else { return nil }
        let (difference, overflow) = certificate.notAfter.subtractingReportingOverflow(certificate.notBefore)
        guard overflow || difference >= maximum else { return nil }
        let day: Int64 = 86_400
        let days = overflow ? "ever" : "\(difference / day + 1) days"
        let dates = "\(CalendarDate(certificate.notBefore)) to \(CalendarDate(certificate.notAfter))"
        return RuleFault(
            reason: .lifetimeTooLong,
            text: "is valid for \(days) (\(dates)), and at most \(maximum / day) are accepted")
    }

    // MARK: Extensions

    /// Bounds the cost: real certificates have a dozen, the longest some 10 KB.
    private static let mostExtensions: CInt = 100
    private static let longestExtension: CInt = 65_536

    /// Why a certificate's extensions can't be understood: too many, too long, repeated (RFC 5280 section 4.2),
    /// undecodable, or name constraints that constrain nothing.
    static func unreadable(_ certificate: Certificate) -> String? {
        let pointer = certificate.pointer
        let count = X509_get_ext_count(pointer)
        guard count <= mostExtensions else {
            return "it has \(count) extensions, and at most \(mostExtensions) are read"
        }
        var seen: Set<[UInt8]> = []
        for index in 0..<max(count, 0) {
            let length = ASN1_STRING_length(X509_EXTENSION_get_data(X509_get_ext(pointer, index)))
            guard length <= longestExtension else {
                let name = X509_EXTENSION_get_object(X509_get_ext(pointer, index)).map(text) ?? ""
                return "its extension \(name) has \(length) bytes, and at most \(longestExtension) are read"
            }
            guard let identifier = X509_EXTENSION_get_object(X509_get_ext(pointer, index)) else { continue }
            let bytes = UnsafeBufferPointer(start: OBJ_get0_data(identifier), count: OBJ_length(identifier))
            guard seen.insert(Array(bytes)).inserted else { return "it has the extension \(text(identifier)) twice" }
        }
        do throws(NameConstraints.Malformed) { _ = try NameConstraints(of: certificate) } catch { return error.text }
        guard X509_get_extension_flags(pointer) & UInt32(EXFLAG_INVALID) != 0 else { return nil }
        for index in 0..<max(count, 0) {
            guard let item = X509_get_ext(pointer, index), let method = X509V3_EXT_get(item) else { continue }
            guard let value = X509V3_EXT_d2i(item) else {
                return
                    "its \(OBJ_nid2ln(method.pointee.ext_nid).map { String(cString: $0) } ?? "extension") can't be read"
            }
            if let form = method.pointee.it {
                ASN1_item_free(OpaquePointer(value), form())
            } else {
                method.pointee.ext_free?(value)
            }
        }
        return "an extension of it can't be read"
    }

    private static func text(_ identifier: OpaquePointer) -> String {
        var text = [CChar](repeating: 0, count: 80)
        OBJ_obj2txt(&text, CInt(text.count), identifier, 1)
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
