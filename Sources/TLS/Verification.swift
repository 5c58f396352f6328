import COpenSSL
import Glibc

/// What a chain is verified for.
package struct VerificationOptions: Sendable {
    /// The name to find in the leaf's subjectAltName. nil: any name will do, a choice to be loud about.
    package var name: ServerName?
    /// The instant at which the dates must hold.
    package var time: UnixTime
    /// True if a chain may end at an anchor that is not self-signed: a pinned leaf or intermediate.
    package var allowsPartialChain: Bool

    package init(name: ServerName?, time: UnixTime, allowsPartialChain: Bool = false) {
        self.name = name
        self.time = time
        self.allowsPartialChain = allowsPartialChain
    }
}

extension TrustAnchors {
    /// The bit strength asked of every key and signature: OpenSSL's level 2, 112 bits. RSA below 2048
    /// and SHA-1 are refused. An anchor's signature of itself proves nothing and isn't looked at.
    static let securityLevel: CInt = 2

    /// Issuers between leaf and anchor, at most. Chains of the web have one or two.
    static let maximumIntermediates: CInt = 8

    /// Builds a chain from the leaf to an anchor, and checks it: signatures, dates at `options.time`,
    /// RFC 5280's rules as X509_STRICT has them, key usage for a TLS server, path lengths and name
    /// constraints, strength, and the name, in subjectAltName only (RFC 9525: no CN; a wildcard is the
    /// whole left-most label and stands for one label).
    ///
    /// The certificates presented after the leaf are candidates for issuers, in any order; those that
    /// the chain doesn't need change nothing. Anchors are preferred to them, and from the first anchor
    /// on, every certificate of the chain is one.
    package func verify(
        _ presented: PresentedChain, options: VerificationOptions
    ) -> Result<VerifiedChain, VerificationFailure> {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        guard let context = X509_STORE_CTX_new() else { return .failure(.outOfMemory) }
        defer { X509_STORE_CTX_free(context) }
        // OpenSSL hangs issuers above a leaf that is an anchor itself. They could only spoil the verdict,
        // and they would stand in the chain with nobody having vouched for them.
        let standsAlone = options.allowsPartialChain && contains(presented.leaf)
        let candidates = CertificateStack(standsAlone ? [] : presented.rest)
        // The context reads the stack without holding it.
        defer { withExtendedLifetime(candidates) {} }
        guard X509_STORE_CTX_init(context, store, presented.leaf.pointer, candidates.pointer) == 1,
            X509_STORE_CTX_set_default(context, "ssl_server") == 1,
            let parameters = X509_STORE_CTX_get0_param(context)
        else { return .failure(.outOfMemory) }

        var flags = UInt(X509_V_FLAG_X509_STRICT | X509_V_FLAG_TRUSTED_FIRST)
        if options.allowsPartialChain { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
        X509_VERIFY_PARAM_set_flags(parameters, flags)
        X509_VERIFY_PARAM_set_time(parameters, time_t(options.time))
        X509_VERIFY_PARAM_set_auth_level(parameters, Self.securityLevel)
        X509_VERIFY_PARAM_set_depth(parameters, Self.maximumIntermediates)
        if let name = options.name, !Self.require(name, in: parameters) {
            return .failure(
                VerificationFailure(
                    code: X509_V_ERR_HOSTNAME_MISMATCH, depth: 0, certificate: presented.leaf, options: options))
        }

        let verdict = X509_verify_cert(context)
        let code = X509_STORE_CTX_get_error(context)
        // Both must say so: the error is 0 too where verification could not even begin.
        if verdict == 1, code == X509_V_OK, let chain = X509_STORE_CTX_get0_chain(context) {
            let certificates = CertificateStack.certificates(of: chain)
            if !certificates.isEmpty { return .success(VerifiedChain(certificates: certificates)) }
        }
        let depth = X509_STORE_CTX_get_error_depth(context)
        let certificate = X509_STORE_CTX_get_current_cert(context).map { Certificate(sharing: $0) }
        return .failure(
            VerificationFailure(
                code: code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code, depth: Int(depth),
                certificate: certificate ?? presented.leaf, options: options))
    }

    /// False if the name can't be asked for.
    private static func require(_ name: ServerName, in parameters: OpaquePointer) -> Bool {
        switch name {
        case .ip(let address):
            return X509_VERIFY_PARAM_set1_ip_asc(parameters, address) == 1
        case .dns(let host):
            guard NameCheck.canAsk(for: host) else { return false }
            X509_VERIFY_PARAM_set_hostflags(parameters, NameCheck.flags)
            return X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1
        }
    }
}
