import COpenSSL
import Glibc

/// What the first certificate of a chain is to be used for.
enum ChainUse {
    case tlsServer
    /// Signing OCSP responses. What makes a responder is left to the caller to check.
    case statusResponder

    /// The name of OpenSSL's set of parameters.
    fileprivate var parameters: String {
        switch self {
        case .tlsServer: "ssl_server"
        case .statusResponder: "default"
        }
    }
}

/// Why an attempt to build a chain failed, and how far it had come.
struct ChainFailure: Error {
    let failure: VerificationFailure
    /// Leaf first; empty if not even that was looked at.
    var chain: [Certificate] = []

    static let outOfMemory = ChainFailure(failure: .outOfMemory)
}

extension TrustAnchors {
    /// One attempt to build a chain, by OpenSSL alone. It takes the first issuer that fits and doesn't
    /// come back to choose another.
    /// - Parameter issuers: candidates, trusted by nobody, in any order.
    func build(
        from leaf: Certificate, by issuers: [Certificate], for use: ChainUse, options: VerificationOptions
    ) -> Result<VerifiedChain, ChainFailure> {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        guard let context = X509_STORE_CTX_new() else { return .failure(.outOfMemory) }
        defer { X509_STORE_CTX_free(context) }
        let candidates = CertificateStack(issuers)
        // The context reads the stacks without holding them.
        defer { withExtendedLifetime((candidates, options.revocationLists)) {} }
        guard X509_STORE_CTX_init(context, store, leaf.pointer, candidates.pointer) == 1,
            X509_STORE_CTX_set_default(context, use.parameters) == 1,
            let parameters = X509_STORE_CTX_get0_param(context)
        else { return .failure(.outOfMemory) }

        var flags = UInt(X509_V_FLAG_TRUSTED_FIRST)
        if use == .tlsServer { flags |= UInt(X509_V_FLAG_X509_STRICT) }
        if options.allowsPartialChain { flags |= UInt(X509_V_FLAG_PARTIAL_CHAIN) }
        if let lists = options.revocationLists, !lists.isEmpty {
            flags |= UInt(X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
            X509_STORE_CTX_set0_crls(context, lists.stack)
            X509_STORE_CTX_set_verify_cb(context) { RevocationLists.verified($0, $1) }
        }
        X509_VERIFY_PARAM_set_flags(parameters, flags)
        X509_VERIFY_PARAM_set_time(parameters, time_t(options.time))
        X509_VERIFY_PARAM_set_auth_level(parameters, Self.securityLevel)
        X509_VERIFY_PARAM_set_depth(parameters, Self.maximumIntermediates)
        if let name = options.name, !Self.require(name, in: parameters) {
            let failure = VerificationFailure(
                code: X509_V_ERR_HOSTNAME_MISMATCH, depth: 0, certificate: leaf, options: options)
            return .failure(ChainFailure(failure: failure))
        }

        let verdict = X509_verify_cert(context)
        let code = X509_STORE_CTX_get_error(context)
        let chain = CertificateStack.certificates(of: X509_STORE_CTX_get0_chain(context))
        // Both must say so: the error is 0 too where verification could not even begin.
        if verdict == 1, code == X509_V_OK, !chain.isEmpty { return .success(VerifiedChain(certificates: chain)) }
        let depth = X509_STORE_CTX_get_error_depth(context)
        let certificate = X509_STORE_CTX_get_current_cert(context).map { Certificate(sharing: $0) }
        let failure =
            if code == X509_V_ERR_UNSPECIFIED, chain.contains(where: \.constrainsNames) {
                VerificationFailure(.tooManyNames, depth: Int(depth), certificate: certificate ?? leaf)
            } else {
                VerificationFailure(
                    code: code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code, depth: Int(depth),
                    certificate: certificate ?? leaf, options: options)
            }
        return .failure(ChainFailure(failure: failure, chain: chain))
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

extension CertificateRules.Fault {
    /// OpenSSL multiplies names with constraints, gives up at a million, and doesn't say so.
    fileprivate static let tooManyNames = CertificateRules.Fault(
        reason: .nameConstraint, text: "has more names than can be checked against its issuers' name constraints")
}

extension Certificate {
    fileprivate var constrainsNames: Bool { X509_get_ext_by_NID(pointer, NID_name_constraints, -1) >= 0 }
}

extension RevocationLists {
    /// Called by verification for each fault, and at its end for each certificate that has none: 1 goes
    /// on, with the fault forgiven. Only the absence of a list that speaks of the certificate is, and
    /// whatever lists say of the anchor: its owner has decided to trust it.
    fileprivate static func verified(_ isGood: CInt, _ context: OpaquePointer?) -> CInt {
        guard isGood == 0, let context else { return isGood }
        let code = X509_STORE_CTX_get_error(context)
        let anchor = OPENSSL_sk_num(X509_STORE_CTX_get0_chain(context)) - 1
        let isAnchor = X509_STORE_CTX_get_error_depth(context) == anchor
        guard noListCodes.contains(code) || isAnchor && listCodes.contains(code) else { return 0 }
        X509_STORE_CTX_set_error(context, X509_V_OK)
        return 1
    }

    private static let noListCodes: Set<CInt> = [X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_DIFFERENT_CRL_SCOPE]

    /// Faults of a list, but not of the certificate.
    static let staleListCodes: Set<CInt> = [
        X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_CRL_NOT_YET_VALID,
        X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD,
        X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER,
        X509_V_ERR_KEYUSAGE_NO_CRL_SIGN, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION,
        X509_V_ERR_CRL_PATH_VALIDATION_ERROR,
    ]

    private static let listCodes = staleListCodes.union([X509_V_ERR_CERT_REVOKED])
}
