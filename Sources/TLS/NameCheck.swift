import COpenSSL

extension Certificate {
    /// What is wrong if the certificate isn't for the name; nil if it is.
    ///
    /// The same rules as in verification (subjectAltName only, RFC 9525), for the one policy that looks
    /// at a leaf without building a chain. It says nothing of who issued the certificate.
    package func mismatch(with name: ServerName) -> VerificationFailure? {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let matches: Bool
        let code: CInt
        switch name {
        case .ip(let address):
            matches = X509_check_ip_asc(pointer, address, 0) == 1
            code = X509_V_ERR_IP_ADDRESS_MISMATCH
        case .dns(let host):
            // A leading dot would ask for a whole domain, an empty name for anything.
            let isAskable = !host.isEmpty && !host.hasPrefix(".") && !host.utf8.contains(0)
            let flags = UInt32(
                X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS
                    | X509_CHECK_FLAG_SINGLE_LABEL_SUBDOMAINS)
            matches = isAskable && X509_check_host(pointer, host, host.utf8.count, flags, nil) == 1
            code = X509_V_ERR_HOSTNAME_MISMATCH
        }
        if matches { return nil }
        return VerificationFailure(
            code: code, depth: 0, certificate: self, options: VerificationOptions(name: name, time: 0))
    }
}
