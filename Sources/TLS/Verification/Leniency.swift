import CPinproxyOpenSSL

/// Accepts the last second of a validity (RFC 5280 section 4.1.2.5), which OpenSSL counts as expired.
struct Leniency {
    let time: UnixTime

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

    /// True to continue without the fault.
    private func forgives(_ context: OpaquePointer) -> Bool {
        let code = X509_STORE_CTX_get_error(context)
        let certificate = X509_STORE_CTX_get_current_cert(context)
        let isForgiven =
            code == X509_V_ERR_CERT_HAS_EXPIRED
            && ASN1Time.seconds(certificate.flatMap { X509_get0_notAfter($0) }) == time
        if isForgiven { X509_STORE_CTX_set_error(context, X509_V_OK) }
        return isForgiven
    }
}
