import COpenSSL
import Glibc

/// What a server's subjectAltName must look like (RFC 5280 section 4.2.1.6, baseline section 7.1.4.2).
///
/// A certificate with one name that is none was issued without the checks that names get, so that no
/// other name in it is worth more.
enum AlternativeNameRules {
    static func fault(of certificate: Certificate) -> CertificateRules.Fault? {
        guard X509_get_ext_by_NID(certificate.pointer, NID_subject_alt_name, -1) >= 0 else {
            return .malformed("it has no subjectAltName, and a CN doesn't stand in for it")
        }
        return certificate.alternativeNames { name -> CertificateRules.Fault? in
            switch name.type {
            case GEN_DNS: name.d.dNSName.flatMap { fault(ofName: Certificate.bytes(of: $0)) }
            case GEN_IPADD: name.d.iPAddress.flatMap { fault(ofAddress: Int(ASN1_STRING_length($0))) }
            default: nil
            }
        }.first
    }

    private static func fault(ofAddress count: Int) -> CertificateRules.Fault? {
        count == 4 || count == 16 ? nil : .malformed("its subjectAltName has an iPAddress of \(count) bytes")
    }

    private static func fault(ofName bytes: [UInt8]) -> CertificateRules.Fault? {
        func fault(_ why: String) -> CertificateRules.Fault {
            let shown = Certificate.printable(Array(bytes.prefix(100)))
            return .malformed("its subjectAltName has the dNSName \(shown.isEmpty ? "\"\"" : shown), \(why)")
        }
        guard !bytes.isEmpty else { return fault("which is empty") }
        guard bytes.allSatisfy(isNameByte) || isAddress(bytes) else { return fault("which has characters of no host name") }
        if isAddress(bytes) { return fault("which is an address and belongs into an iPAddress") }
        let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.allSatisfy({ (1...63).contains($0.count) }) else {
            return fault("which has a label that is empty or longer than 63 characters")
        }
        return nil
    }

    /// Letters, digits and hyphens of host names, the underscore that many have, and the wildcard's star.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
            UInt8(ascii: "*"):
            true
        default: false
        }
    }

    private static func isAddress(_ bytes: [UInt8]) -> Bool {
        guard bytes.count < Int(INET6_ADDRSTRLEN), !bytes.contains(0) else { return false }
        let text = String(decoding: bytes, as: UTF8.self)
        var address = in6_addr()
        return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1
    }
}
