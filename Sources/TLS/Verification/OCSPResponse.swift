import CPinproxyOpenSSL
import CPinproxyShims

extension VerifiedChain {
    /// Checks a stapled OCSP response for the leaf: successful, about this certificate, signed by its issuer or a
    /// delegated responder (RFC 6960 section 4.2.2.2), and current at `time`.
    package func checkStatus(_ response: [UInt8], at time: UnixTime) -> Result<OCSPStatus, OCSPFailure> {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        do throws(OCSPFailure) {
            guard certificates.count > 1 else { throw .noIssuer }
            let answer = try OCSPAnswer(response)
            let entry = try answer.entry(for: leaf, issuer: certificates[1])
            try answer.checkSignature(issuer: certificates[1], at: time)
            return .success(try entry.status(at: time))
        } catch { return .failure(error) }
    }
}

extension Certificate {
    /// Whether it has the TLS feature status_request (RFC 7633), or an unreadable one.
    package var mustStaple: Bool {
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        guard X509_get_ext_by_NID(pointer, NID_tlsfeature, -1) >= 0 else { return false }
        guard let value = X509_get_ext_d2i(pointer, NID_tlsfeature, nil, nil) else { return true }
        let features = OpaquePointer(value)
        defer { TLS_FEATURE_free(features) }
        return (0..<max(OPENSSL_sk_num(features), 0)).contains { index in
            let feature = OPENSSL_sk_value(features, index)?.assumingMemoryBound(to: ASN1_INTEGER.self)
            return feature.map { ASN1_INTEGER_get($0) } == Int(TLSEXT_TYPE_status_request)
        }
    }
}

struct OCSPAnswer: ~Copyable {
    let pointer: OpaquePointer

    init(_ bytes: [UInt8]) throws(OCSPFailure) {
        do { try CertificateLimits.check(statusResponse: bytes.span) } catch { throw .malformed(error.text) }
        let (response, isWhole) = bytes.withUnsafeBufferPointer { bytes -> (OpaquePointer?, Bool) in
            guard let start = bytes.baseAddress else { return (nil, false) }
            var cursor: UnsafePointer<UInt8>? = start
            return (d2i_OCSP_RESPONSE(nil, &cursor, bytes.count), cursor == start + bytes.count)
        }
        guard let response else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        defer { OCSP_RESPONSE_free(response) }
        guard isWhole else { throw .malformed("there are bytes after it") }
        let status = OCSP_response_status(response)
        guard status == OCSP_RESPONSE_STATUS_SUCCESSFUL else {
            throw .errorStatus(OCSP_response_status_str(Int(status)).map { String(cString: $0) } ?? "\(status)")
        }
        guard let basic = OCSP_response_get1_basic(response) else { throw .malformed(OpenSSLErrorQueue.takeReason()) }
        pointer = basic
    }

    deinit { OCSP_BASICRESP_free(pointer) }

    /// Entries examined; a stapled response has one.
    private static let maximumEntries: CInt = 100

    /// The certificate's entry, by serial number, issuer name and key.
    func entry(for leaf: Certificate, issuer: Certificate) throws(OCSPFailure) -> Entry {
        for index in 0..<min(OCSP_resp_count(pointer), Self.maximumEntries) {
            guard let single = OCSP_resp_get0(pointer, index), let said = OCSP_SINGLERESP_get0_id(single),
                let digest = shim_OCSP_id_digest(said),
                let meant = OCSP_cert_to_id(digest, leaf.pointer, issuer.pointer)
            else { continue }
            defer { OCSP_CERTID_free(meant) }
            if OCSP_id_cmp(said, meant) == 0 { return Entry(single) }
        }
        throw .wrongCertificate
    }

    // MARK: Signature

    func checkSignature(issuer: Certificate, at time: UnixTime) throws(OCSPFailure) {
        try checkAlgorithm()
        // The issuer needs no copy in the response.
        let signers = CertificateStack([issuer])
        defer { withExtendedLifetime(signers) {} }
        // Finds the signer and checks its signature; its right to sign is decided below, by our clock.
        guard OCSP_basic_verify(pointer, signers.pointer, nil, UInt(OCSP_NOVERIFY)) == 1 else {
            throw .badSignature(OpenSSLErrorQueue.takeReason())
        }
        var found: OpaquePointer?
        guard OCSP_resp_get0_signer(pointer, &found, signers.pointer) == 1, let found else {
            throw .badSignature("its signer is unknown")
        }
        let signer = Certificate(sharing: found)
        if signer != issuer { try checkDelegation(of: signer, by: issuer, at: time) }
    }

    /// SHA-1 and older digests are forgeable, and no longer needed.
    private func checkAlgorithm() throws(OCSPFailure) {
        guard let algorithm = OCSP_resp_get0_tbs_sigalg(pointer) else { throw .malformed("no signature algorithm") }
        let identifier = OBJ_obj2nid(algorithm.pointee.algorithm)
        var digest = NID_undef
        var key = NID_undef
        let accepted =
            identifier == NID_ED25519 || identifier == NID_ED448
            || OBJ_find_sigid_algs(identifier, &digest, &key) == 1
                && [NID_sha256, NID_sha384, NID_sha512].contains(digest)
        guard accepted else {
            let name = OBJ_nid2ln(identifier).map { String(cString: $0) } ?? "unknown"
            throw .badSignature("the algorithm \(name) isn't accepted")
        }
    }

    /// A delegated responder's certificate is for that only, and issued directly by the same issuer.
    private func checkDelegation(of signer: Certificate, by issuer: Certificate, at time: UnixTime) throws(OCSPFailure)
    {
        let who = "its signer \(signer.subject)"
        let usage = X509_get_extended_key_usage(signer.pointer)
        guard X509_get_extension_flags(signer.pointer) & UInt32(EXFLAG_XKUSAGE) != 0, usage & UInt32(XKU_OCSP_SIGN) != 0
        else { throw .badSignature("\(who) has no delegation (extendedKeyUsage OCSPSigning)") }
        let options = VerificationOptions(name: nil, time: time, allowsPartialChain: true)
        switch TrustAnchors([issuer]).build(from: signer, by: [], for: .statusResponder, options: options) {
        case .failure(let failed): throw .badSignature("\(who) isn't the issuer's: \(failed.failure.message)")
        case .success(let chain):
            guard chain.certificates.count == 2 else { throw .badSignature("\(who) isn't issued by the issuer itself") }
        }
    }

    // MARK: Entry

    struct Entry {
        private let status: CInt
        private let reason: CInt
        private let revoked, thisUpdate, nextUpdate: UnixTime?
        private let hasNextUpdate: Bool

        /// Tolerance for a responder's clock ahead of ours.
        private static let clockTolerance: Int64 = 300
        /// Validity of a response without nextUpdate.
        private static let longestWithoutEnd: Int64 = 7 * 86_400

        fileprivate init(_ single: OpaquePointer) {
            var reason = CInt(-1)
            var times:
                (
                    UnsafeMutablePointer<ASN1_STRING>?, UnsafeMutablePointer<ASN1_STRING>?,
                    UnsafeMutablePointer<ASN1_STRING>?
                )
            status = OCSP_single_get0_status(single, &reason, &times.0, &times.1, &times.2)
            self.reason = reason
            revoked = ASN1Time.seconds(times.0)
            thisUpdate = ASN1Time.seconds(times.1)
            nextUpdate = ASN1Time.seconds(times.2)
            hasNextUpdate = times.2 != nil
        }

        fileprivate func status(at time: UnixTime) throws(OCSPFailure) -> OCSPStatus {
            guard let thisUpdate else { throw .malformed("its thisUpdate can't be read") }
            guard let end = hasNextUpdate ? nextUpdate : thisUpdate + Self.longestWithoutEnd, end >= thisUpdate else {
                throw .malformed("its nextUpdate can't be read or is before its thisUpdate")
            }
            // A revocation is permanent: an old response with one still counts.
            if status == V_OCSP_CERTSTATUS_REVOKED {
                throw .revoked(date: revoked, reason: reason >= 0 ? RevocationReason(code: Int(reason)) : nil)
            }
            guard thisUpdate <= time + Self.clockTolerance else { throw .notYetValid(until: thisUpdate) }
            guard time <= end else { throw .expired(since: end) }
            guard status == V_OCSP_CERTSTATUS_GOOD else { throw .unknown }
            return OCSPStatus(thisUpdate: thisUpdate, validUntil: end)
        }
    }
}
