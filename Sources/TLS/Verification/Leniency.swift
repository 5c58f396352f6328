import COpenSSL

/// What OpenSSL calls a fault of a chain and is not, for the time of one verification.
///
/// - The last second of a certificate or of a list, which OpenSSL takes as the first one after it (RFC 5280
///   sections 4.1.2.5 and 6.3.3).
/// - The absence of a list that speaks of a certificate; it is remembered.
/// - Whatever lists say of the anchor: its owner has decided to trust it.
struct Leniency {
    let time: UnixTime
    /// Depths of certificates that no list speaks of.
    private(set) var unlisted: [Int] = []

    init(time: UnixTime) { self.time = time }

    /// Verifies, asked by OpenSSL for each fault.
    /// - Parameter context: ready to be verified.
    mutating func verify(_ context: OpaquePointer) -> CInt {
        withUnsafeMutablePointer(to: &self) { leniency in
            X509_STORE_CTX_set_ex_data(context, Self.place, leniency)
            defer { X509_STORE_CTX_set_ex_data(context, Self.place, nil) }
            X509_STORE_CTX_set_verify_cb(context) { isGood, context in
                guard isGood == 0, let context, let found = X509_STORE_CTX_get_ex_data(context, Leniency.place) else {
                    return isGood
                }
                return found.assumingMemoryBound(to: Leniency.self).pointee.forgives(context) ? 1 : 0
            }
            return X509_verify_cert(context)
        }
    }

    /// The index of X509_STORE_CTX_set_app_data, a macro.
    private static let place: CInt = 0

    /// True if verification goes on, with the fault forgotten.
    private mutating func forgives(_ context: OpaquePointer) -> Bool {
        let code = X509_STORE_CTX_get_error(context)
        let depth = Int(X509_STORE_CTX_get_error_depth(context))
        let isAnchor = depth == Int(OPENSSL_sk_num(X509_STORE_CTX_get0_chain(context))) - 1
        let isForgiven: Bool
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            let certificate = X509_STORE_CTX_get_current_cert(context)
            isForgiven = ASN1Time.seconds(certificate.flatMap { X509_get0_notAfter($0) }) == time
        case X509_V_ERR_CRL_HAS_EXPIRED:
            let list = X509_STORE_CTX_get0_current_crl(context)
            isForgiven = isAnchor || ASN1Time.seconds(list.flatMap { X509_CRL_get0_nextUpdate($0) }) == time
        case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_DIFFERENT_CRL_SCOPE:
            if !isAnchor { unlisted.append(depth) }
            isForgiven = true
        default: isForgiven = isAnchor && RevocationLists.codes.contains(code)
        }
        if isForgiven { X509_STORE_CTX_set_error(context, X509_V_OK) }
        return isForgiven
    }
}

extension RevocationLists {
    /// Faults of a list, but not of the certificate.
    static let staleListCodes: Set<CInt> = [
        X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE, X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_CRL_NOT_YET_VALID,
        X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD,
        X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER,
        X509_V_ERR_KEYUSAGE_NO_CRL_SIGN, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION,
        X509_V_ERR_CRL_PATH_VALIDATION_ERROR,
    ]

    /// Whatever a list may bring up against a certificate.
    fileprivate static let codes = staleListCodes.union([X509_V_ERR_CERT_REVOKED])
}
