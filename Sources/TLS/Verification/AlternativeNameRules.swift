import CPinproxyOpenSSL
import PinproxyAddresses

/// The required form of a server's subjectAltName (RFC 5280 section 4.2.1.6, baseline section 7.1.4.2). One invalid
/// name shows that the issuer checked none.
enum AlternativeNameRules {
    static func fault(of certificate: Certificate) -> RuleFault? {
        guard X509_get_ext_by_NID(certificate.pointer, NID_subject_alt_name, -1) >= 0 else {
            return .malformed("it has no subjectAltName, and a CN doesn't replace it")
        }
        return certificate.alternativeNames { name -> RuleFault? in
            switch name.type {
            case GEN_DNS: name.d.dNSName.flatMap { fault(ofName: $0) }
            case GEN_IPADD: name.d.iPAddress.flatMap { fault(ofAddress: Int(ASN1_STRING_length($0))) }
            default: nil
            }
        }.first
    }

    private static func fault(ofAddress count: Int) -> RuleFault? {
        count == 4 || count == 16 ? nil : .malformed("its subjectAltName has an iPAddress of \(count) bytes")
    }

    private static func fault(ofName name: UnsafePointer<ASN1_STRING>) -> RuleFault? {
        let bytes = UnsafeBufferPointer(start: ASN1_STRING_get0_data(name), count: Int(ASN1_STRING_length(name)))
        guard let problem = problem(of: bytes) else { return nil }
        let shown = Certificate.printable(Array(bytes.prefix(100)))
        return .malformed("its subjectAltName has the dNSName \(shown.isEmpty ? "\"\"" : shown), \(problem)")
    }

    /// One pass, since a certificate may have thousands of names.
    private static func problem(of bytes: UnsafeBufferPointer<UInt8>) -> String? {
        var label = 0
        var isNumeric = true
        for byte in bytes {
            if byte == UInt8(ascii: ".") {
                guard label > 0 else { return "which has an empty label" }
                label = 0
                continue
            }
            guard nameBytes[Int(byte)] else {
                return IPAddress(bytes.span) != nil ? addressProblem : "which has characters of no host name"
            }
            label += 1
            guard label <= 63 else { return "which has a label of more than 63 characters" }
            if byte > UInt8(ascii: "9") || byte < UInt8(ascii: "0") { isNumeric = false }
        }
        guard label > 0 else { return bytes.isEmpty ? "which is empty" : "which has an empty label" }
        return isNumeric && IPAddress(bytes.span) != nil ? addressProblem : nil
    }

    private static let addressProblem = "which is an address and belongs into an iPAddress"

    /// Letters, digits and hyphens of host names, the underscore that many have, and the wildcard's star.
    private static let nameBytes: [Bool] = {
        let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_*".utf8)
        return (0...255).map { allowed.contains($0) }
    }()
}
