import CPinproxyOpenSSL
import Synchronization

final class RevocationList: @unchecked Sendable {
    // The first search of an X509_CRL sorts its entries under a lock; nothing else changes it.
    let pointer: OpaquePointer
    let digest: SHA256Digest
    /// Its file; empty: none.
    let path: String
    /// Nil: all certificates of its issuer.
    private let scope: RevocationScope?
    /// An unknown critical extension of the list or an entry may change its meaning.
    let hasUnknownExtension: Bool
    /// Whether a key, by its digest, signed the list.
    private let signers = Mutex<[SHA256Digest: Bool]>([:])
    /// Normally there is one, unless other issuers have the same name.
    private static let signersLimit = 16

    /// Parses exactly these bytes, if the list is usable.
    init(der: [UInt8], path: String = "") throws(RevocationListFault) {
        OpenSSLErrorQueue.clear()
        var cursor: UnsafePointer<UInt8>?
        let (list, left) = der.withUnsafeBufferPointer { bytes in
            cursor = bytes.baseAddress
            let list = bytes.isEmpty ? nil : d2i_X509_CRL(nil, &cursor, bytes.count)
            return (list, bytes.baseAddress.map { $0 + bytes.count } != cursor)
        }
        guard let list else {
            throw RevocationListFault(reason: "not a PEM or DER CRL (\(OpenSSLErrorQueue.takeReason()))")
        }
        pointer = list
        digest = SHA256Digest.of(der)
        self.path = path
        do throws(RevocationListFault) {
            if left { throw RevocationListFault(reason: "there are bytes after the revocation list") }
            if let reason = Self.unusable(list) { throw RevocationListFault(reason: reason) }
            scope = try RevocationScope(of: list)
        } catch {
            X509_CRL_free(list)
            throw error
        }
        hasUnknownExtension = Self.hasUnknownExtension(list)
        sort()
    }

    deinit { X509_CRL_free(pointer) }

    /// Sorts the entries before the first handshake needs them.
    private func sort() {
        guard let number = ASN1_INTEGER_new() else { return }
        defer { ASN1_INTEGER_free(number) }
        X509_CRL_get0_by_serial(pointer, nil, number)
    }

    static func all(in bytes: [UInt8], path: String = "") throws(RevocationListFault) -> [RevocationList] {
        guard PEM.looksLikePEM(bytes) else { return [try RevocationList(der: bytes, path: path)] }
        let blocks: [PEMBlock]
        do { blocks = try PEM.blocks(in: bytes) } catch { throw RevocationListFault(reason: error.description) }
        var lists: [RevocationList] = []
        for block in blocks where block.label == "X509 CRL" {
            do throws(RevocationListFault) { lists.append(try RevocationList(der: block.der, path: path)) } catch {
                throw RevocationListFault(reason: "line \(block.line): list \(lists.count + 1) in it: \(error.reason)")
            }
        }
        guard !lists.isEmpty else {
            throw RevocationListFault(reason: "\(PEMError.noBlock(wanted: "revocation list"))")
        }
        return lists
    }

    var term: RevocationListTerm {
        RevocationListTerm(
            path: path, issuer: Certificate.line(X509_CRL_get_issuer(pointer)),
            thisUpdate: thisUpdate, nextUpdate: nextUpdate)
    }

    func isByIssuer(of certificate: Certificate) -> Bool {
        X509_NAME_cmp(X509_CRL_get_issuer(pointer), X509_get_issuer_name(certificate.pointer)) == 0
    }

    func isNamed(after issuer: Certificate) -> Bool {
        X509_NAME_cmp(X509_CRL_get_issuer(pointer), X509_get_subject_name(issuer.pointer)) == 0
    }

    /// Whether the certificate's key signed the list, which may name another certificate of a renewed issuer.
    func isSigned(by issuer: Certificate) -> Bool {
        let key = issuer.spkiSHA256
        if let known = signers.withLock({ $0[key] }) { return known }
        OpenSSLErrorQueue.clear()
        defer { OpenSSLErrorQueue.clear() }
        let isSigned = X509_get0_pubkey(issuer.pointer).map { X509_CRL_verify(pointer, $0) == 1 } ?? false
        signers.withLock { signers in
            if signers.count >= Self.signersLimit { signers.removeAll() }
            signers[key] = isSigned
        }
        return isSigned
    }

    /// Whether its authorityKeyIdentifier names another certificate.
    func names(anotherThan issuer: Certificate) -> Bool {
        guard let value = X509_CRL_get_ext_d2i(pointer, NID_authority_key_identifier, nil, nil) else { return false }
        let identifier = value.assumingMemoryBound(to: AUTHORITY_KEYID.self)
        defer { AUTHORITY_KEYID_free(identifier) }
        return X509_check_akid(issuer.pointer, identifier) != X509_V_OK
    }

    func covers(_ certificate: Certificate) -> Bool {
        scope?.covers(certificate, issuer: X509_CRL_get_issuer(pointer)) ?? true
    }

    /// The time of issue, which loading has checked.
    var thisUpdate: UnixTime { X509_CRL_get0_lastUpdate(pointer).flatMap { ASN1Time.seconds($0) } ?? .min }

    /// The last valid second, which loading has checked.
    var nextUpdate: UnixTime { ASN1Time.seconds(X509_CRL_get0_nextUpdate(pointer)) ?? .min }

    func entry(for certificate: Certificate) -> (date: UnixTime?, reason: RevocationReason?)? {
        var entry: OpaquePointer?
        guard isByIssuer(of: certificate), X509_CRL_get0_by_cert(pointer, &entry, certificate.pointer) == 1, let entry
        else { return nil }
        var reason: RevocationReason?
        if let code = X509_REVOKED_get_ext_d2i(entry, NID_crl_reason, nil, nil) {
            let code = code.assumingMemoryBound(to: ASN1_ENUMERATED.self)
            defer { ASN1_ENUMERATED_free(code) }
            reason = RevocationReason(code: ASN1_ENUMERATED_get(code))
        }
        return (ASN1Time.seconds(X509_REVOKED_get0_revocationDate(entry)), reason)
    }

    /// Why the list would have no effect.
    private static func unusable(_ list: OpaquePointer) -> String? {
        if X509_CRL_get_ext_by_NID(list, NID_delta_crl, -1) >= 0 {
            return "a delta list, which only changes another one; give the complete list"
        }
        if X509_CRL_get0_lastUpdate(list).flatMap({ ASN1Time.seconds($0) }) == nil {
            return "its thisUpdate can't be read"
        }
        guard let next = X509_CRL_get0_nextUpdate(list), ASN1Time.seconds(next) != nil else {
            return "it has no nextUpdate (RFC 5280 section 5.1.2.5), so its expiry is unknown"
        }
        if X509_CRL_get_ext_by_NID(list, NID_authority_key_identifier, -1) >= 0 {
            guard let value = X509_CRL_get_ext_d2i(list, NID_authority_key_identifier, nil, nil) else {
                return "its authorityKeyIdentifier can't be read"
            }
            AUTHORITY_KEYID_free(value.assumingMemoryBound(to: AUTHORITY_KEYID.self))
        }
        return nil
    }

    private static func hasUnknownExtension(_ list: OpaquePointer) -> Bool {
        let known = [NID_authority_key_identifier, NID_issuing_distribution_point, NID_delta_crl]
        if hasUnknown(X509_CRL_get0_extensions(list), known) { return true }
        guard let entries = X509_CRL_get_REVOKED(list) else { return false }
        return (0..<max(OPENSSL_sk_num(entries), 0)).contains { index in
            guard let entry = OPENSSL_sk_value(entries, index) else { return false }
            return hasUnknown(X509_REVOKED_get0_extensions(OpaquePointer(entry)), [NID_certificate_issuer])
        }
    }

    /// Whether an unknown one is critical.
    private static func hasUnknown(_ extensions: OpaquePointer?, _ known: [CInt]) -> Bool {
        (0..<max(X509v3_get_ext_count(extensions), 0)).contains { index in
            let item = X509v3_get_ext(extensions, index)
            guard X509_EXTENSION_get_critical(item) != 0 else { return false }
            return !known.contains(OBJ_obj2nid(X509_EXTENSION_get_object(item)))
        }
    }
}
