import CPinproxyOpenSSL

extension Certificate {
    /// Why the certificate isn't for the name (RFC 9525), if so. The issuer isn't checked.
    package func mismatch(with name: ServerName, wildcards: WildcardRule = .oneLabel) -> VerificationFailure? {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let matches: Bool
        let code: CInt
        switch name {
        case .ip(let address):
            matches = X509_check_ip_asc(pointer, address, 0) == 1
            code = X509_V_ERR_IP_ADDRESS_MISMATCH
        case .dns(let host):
            matches =
                NameCheck.canAsk(for: host)
                && X509_check_host(pointer, host, host.utf8.count, NameCheck.flags(wildcards), nil) == 1
            code = X509_V_ERR_HOSTNAME_MISMATCH
        }
        if matches { return nil }
        return VerificationFailure(
            code: code, depth: 0, certificate: self,
            options: VerificationOptions(name: name, time: 0, wildcards: wildcards))
    }
}

enum NameCheck {
    /// Flags for a check of subjectAltName only.
    static func flags(_ wildcards: WildcardRule) -> UInt32 {
        var flags =
            X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS
            | X509_CHECK_FLAG_SINGLE_LABEL_SUBDOMAINS
        if case .refused = wildcards { flags |= X509_CHECK_FLAG_NO_WILDCARDS }
        return UInt32(flags)
    }

    /// False for names that OpenSSL reads differently: empty (no check), a leading dot (a domain), a NUL (its prefix).
    static func canAsk(for host: String) -> Bool {
        guard let first = host.utf8.first else { return false }
        return first != UInt8(ascii: ".") && !host.utf8.contains(0)
    }
}
