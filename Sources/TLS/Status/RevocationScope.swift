import CPinproxyOpenSSL

/// The certificates that a partial list covers (issuingDistributionPoint, RFC 5280 section 5.2.5).
final class RevocationScope {
    // Owned; not changed after init.
    private let pointer: UnsafeMutablePointer<ISSUING_DIST_POINT>

    /// Nil for a full list.
    init?(of list: OpaquePointer) throws(RevocationListFault) {
        guard X509_CRL_get_ext_by_NID(list, NID_issuing_distribution_point, -1) >= 0 else { return nil }
        guard let value = X509_CRL_get_ext_d2i(list, NID_issuing_distribution_point, nil, nil) else {
            throw RevocationListFault(reason: "its issuingDistributionPoint can't be read")
        }
        pointer = value.assumingMemoryBound(to: ISSUING_DIST_POINT.self)
        if let reason = unusable { throw RevocationListFault(reason: reason) }
    }

    deinit { ISSUING_DIST_POINT_free(pointer) }

    private var unusable: String? {
        let scope = pointer.pointee
        if scope.indirectCRL != 0 { return "an indirect list (of several issuers), which isn't supported" }
        if scope.onlysomereasons != nil { return "a list of some reasons only, which isn't supported" }
        if scope.onlyattr != 0 { return "a list of attribute certificates, not of certificates" }
        if scope.onlyuser != 0, scope.onlyCA != 0 {
            return "a list of no certificates: its issuingDistributionPoint contradicts itself"
        }
        if let point = scope.distpoint, point.pointee.type != 0 {
            return "a list whose distribution point is relative to its issuer's name, which isn't supported"
        }
        return nil
    }

    /// - Parameter issuer: the list's.
    func covers(_ certificate: Certificate, issuer: OpaquePointer?) -> Bool {
        let scope = pointer.pointee
        guard certificate.isAuthority ? scope.onlyuser == 0 : scope.onlyCA == 0 else { return false }
        guard let own = scope.distpoint?.pointee.name.fullname else { return true }
        guard let value = X509_get_ext_d2i(certificate.pointer, NID_crl_distribution_points, nil, nil)
        else { return false }
        let points = OpaquePointer(value)
        defer { CRL_DIST_POINTS_free(points) }
        return (0..<max(OPENSSL_sk_num(points), 0)).contains { index in
            guard let point = OPENSSL_sk_value(points, index)?.load(as: DIST_POINT.self),
                Self.isIssuer(issuer, in: point.CRLissuer)
            else { return false }
            guard let names = point.distpoint else { return true }
            return names.pointee.type == 0 && Self.share(names.pointee.name.fullname, own)
        }
    }

    /// - Parameter names: of a distribution point; nil: the certificate's issuer.
    private static func isIssuer(_ issuer: OpaquePointer?, in names: OpaquePointer?) -> Bool {
        guard let names else { return true }
        return (0..<max(OPENSSL_sk_num(names), 0)).contains { index in
            guard let name = OPENSSL_sk_value(names, index)?.load(as: GENERAL_NAME.self), name.type == GEN_DIRNAME
            else { return false }
            return X509_NAME_cmp(name.d.directoryName, issuer) == 0
        }
    }

    private static func share(_ one: OpaquePointer?, _ other: OpaquePointer) -> Bool {
        (0..<max(OPENSSL_sk_num(one), 0)).contains { index in
            let name = OPENSSL_sk_value(one, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
            return (0..<max(OPENSSL_sk_num(other), 0)).contains { index in
                let second = OPENSSL_sk_value(other, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
                return GENERAL_NAME_cmp(name, second) == 0
            }
        }
    }
}
