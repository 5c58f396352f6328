import CPinproxyOpenSSL
import Glibc

/// The purpose of a chain's first certificate.
enum ChainUse {
    case tlsServer
    /// Signing OCSP responses. The caller checks the delegation.
    case statusResponder
    case anchor

    fileprivate var parameters: String {
        switch self {
        case .tlsServer: "ssl_server"
        case .statusResponder, .anchor: "default"
        }
    }
}

extension TrustAnchors {
    /// One attempt by OpenSSL, which takes the first matching issuer and never backtracks.
    /// - Parameters:
    ///   - issuers: untrusted candidates in any order.
    ///   - end: the allowed anchors; nil: any.
    func build(
        from leaf: Certificate, by issuers: [Certificate], to end: [Certificate]? = nil, for use: ChainUse,
        options: VerificationOptions
    ) -> Result<VerifiedChain, ChainFailure> {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        guard let context = X509_STORE_CTX_new() else { return .failure(.outOfMemory) }
        defer { X509_STORE_CTX_free(context) }
        let candidates = CertificateStack(issuers)
        let trusted = end.map { CertificateStack($0) }
        // The context doesn't hold the stacks.
        defer { withExtendedLifetime((candidates, trusted)) {} }
        guard X509_STORE_CTX_init(context, store, leaf.pointer, candidates.pointer) == 1,
            X509_STORE_CTX_set_default(context, use.parameters) == 1,
            let parameters = X509_STORE_CTX_get0_param(context)
        else { return .failure(.outOfMemory) }

        if let trusted { X509_STORE_CTX_set0_trusted_stack(context, trusted.pointer) }
        var flags = UInt(X509_V_FLAG_TRUSTED_FIRST)
        if use == .tlsServer { flags |= UInt(X509_V_FLAG_X509_STRICT) }
        if options.allowsPartialChain { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
        X509_VERIFY_PARAM_set_flags(parameters, flags)
        X509_VERIFY_PARAM_set_time(parameters, time_t(options.time))
        X509_VERIFY_PARAM_set_auth_level(parameters, Self.securityLevel)
        X509_VERIFY_PARAM_set_depth(parameters, Self.maximumIntermediates)
        // Otherwise OpenSSL checks the CN against name constraints if there is no DNS name.
        X509_VERIFY_PARAM_set_hostflags(parameters, NameCheck.flags(options.wildcards))
        if let name = options.name, !Self.require(name, in: parameters) {
            let failure = VerificationFailure(
                code: X509_V_ERR_HOSTNAME_MISMATCH, depth: 0, certificate: leaf, options: options)
            return .failure(ChainFailure(failure: failure))
        }

        var leniency = Leniency(time: options.time)
        let verdict = leniency.verify(context)
        let code = X509_STORE_CTX_get_error(context)
        let chain = CertificateStack.certificates(of: X509_STORE_CTX_get0_chain(context))
        // Both, as the error is 0 too if verification could not begin.
        if verdict == 1, code == X509_V_OK, !chain.isEmpty {
            return .success(VerifiedChain(certificates: chain))
        }
        let depth = Int(X509_STORE_CTX_get_error_depth(context))
        let certificate = X509_STORE_CTX_get_current_cert(context).map { Certificate(sharing: $0) } ?? leaf
        if code == X509_V_ERR_UNSPECIFIED, chain.contains(where: \.constrainsNames) {
            let failure = VerificationFailure(.tooManyNames, depth: depth, certificate: certificate)
            return .failure(ChainFailure(failure: failure, chain: chain))
        }
        let failure = VerificationFailure(
            code: code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code, depth: depth, certificate: certificate,
            options: options)
        if !failure.isOfCertificate, failure.reason == .malformed {
            // OpenSSL blames the name rather than the unreadable constraint.
            do throws(ChainFailure) { _ = try NameConstraints.read(in: chain, above: depth) } catch {
                return .failure(error)
            }
        }
        guard failure.reason == .nameConstraint,
            let culprit = NameConstraints.culprit(of: certificate, in: chain, above: depth)
        else { return .failure(ChainFailure(failure: failure, chain: chain)) }
        let whose = "they are those of \(VerificationFailure.subject(of: culprit))"
        return .failure(ChainFailure(failure: failure.adding(whose), chain: chain, culprit: culprit))
    }

    private static func require(_ name: ServerName, in parameters: OpaquePointer) -> Bool {
        switch name {
        case .ip(let address):
            return X509_VERIFY_PARAM_set1_ip_asc(parameters, address) == 1
        case .dns(let host):
            guard NameCheck.canAsk(for: host) else { return false }
            return X509_VERIFY_PARAM_set1_host(parameters, host, 0) == 1
        }
    }
}

extension RuleFault {
    /// OpenSSL multiplies names by constraints, and gives up silently at a million.
    fileprivate static let tooManyNames = RuleFault(
        reason: .nameConstraint, text: "has more names than can be checked against its issuers' name constraints")
}

extension Certificate {
    fileprivate var constrainsNames: Bool { X509_get_ext_by_NID(pointer, NID_name_constraints, -1) >= 0 }
}
