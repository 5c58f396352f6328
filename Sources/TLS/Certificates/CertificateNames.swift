import CPinproxyOpenSSL
import PinproxyAddresses

extension Certificate {
    /// The subjectAltName's DNS names in order, never the CN; bytes that are not printable ASCII become `\xHH`.
    package var dnsNames: [String] {
        alternativeNames { name in
            guard name.type == GEN_DNS, let value = name.d.dNSName else { return nil }
            return Self.printable(Self.bytes(of: value))
        }
    }

    /// The subjectAltName's IP addresses in their usual text (RFC 5952 for IPv6), in order.
    package var ipAddresses: [String] {
        alternativeNames { name in
            guard name.type == GEN_IPADD, let value = name.d.iPAddress else { return nil }
            return IPAddress(bytes: Self.bytes(of: value))?.description
        }
    }

    /// The results of `read` for the names of the subjectAltName; empty if that is missing or unreadable.
    func alternativeNames<Name>(_ read: (GENERAL_NAME) -> Name?) -> [Name] {
        guard let extensionValue = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return [] }
        let names = OpaquePointer(extensionValue)
        defer { GENERAL_NAMES_free(names) }
        var found: [Name] = []
        for index in 0..<OPENSSL_sk_num(names) {
            guard let value = OPENSSL_sk_value(names, index) else { continue }
            if let name = read(value.load(as: GENERAL_NAME.self)) { found.append(name) }
        }
        return found
    }

    static func printable(_ bytes: [UInt8]) -> String {
        var text = ""
        for byte in bytes {
            if (0x20..<0x7F).contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "\\x" + Hexadecimal.encode([byte])
            }
        }
        return text
    }
}
