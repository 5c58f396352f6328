import CPinproxyOpenSSL

/// Acceptable keys: RSA of 2048 to 8192 bits, the three curves of the web, the Edwards curves of RFC 8410, and ML-DSA
/// (RFC 9881), which OpenSSL 3.5 has. Larger RSA keys and exponents add no strength, and cost milliseconds per
/// signature.
enum KeyRules {
    private static let curves: Set<String> = ["P-256", "P-384", "P-521"]
    /// OpenSSL has no numbers for these.
    private static let named: Set<String> = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"]
    private static let longestExponent: CInt = 32
    private static let bits: ClosedRange<CInt> = 2048...8192

    static func fault(of certificate: Certificate) -> RuleFault? {
        guard let key = X509_get0_pubkey(certificate.pointer) else { return .malformed("its key can't be read") }
        let description = KeyDescription.of(key)
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA, EVP_PKEY_RSA_PSS:
            // OpenSSL's measure of strength rounds, and takes 2040 bits for 2048.
            guard bits.contains(EVP_PKEY_get_bits(key)) else { return .weakKey(description) }
            return hasGoodExponent(key)
                ? nil
                : .weakKey(
                    "\(description) with an exponent that is even, below 3, or longer than \(longestExponent) bits")
        case EVP_PKEY_EC: return curves.contains(KeyDescription.curve(of: key)) ? nil : .weakKey(description)
        case EVP_PKEY_ED25519, EVP_PKEY_ED448: return nil
        default: return named.contains(description) ? nil : .weakKey(description)
        }
    }

    private static func hasGoodExponent(_ key: OpaquePointer) -> Bool {
        var exponent: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1, let exponent else { return false }
        defer { BN_free(exponent) }
        return BN_is_odd(exponent) == 1 && BN_is_one(exponent) == 0 && BN_is_negative(exponent) == 0
            && BN_num_bits(exponent) <= longestExponent
    }
}
