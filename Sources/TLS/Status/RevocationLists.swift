import COpenSSL
import Glibc

/// Certificate revocation lists (RFC 5280 section 5) that somebody keeps on disk.
///
/// A certificate whose issuer has a list here is judged by it: the list must be current and signed by the
/// issuer, and must not have the certificate. An issuer without a list is not asked; a list that leaves
/// the certificate out of its scope counts only for what it has. Immutable; one set serves all threads.
package final class RevocationLists: @unchecked Sendable {
    private let lists: [RevocationList]
    /// The files that they were read from, in the order given.
    package let paths: [String]
    // A STACK_OF(X509_CRL) of the same, not changed after init.
    let stack: OpaquePointer

    /// Digest of the set, whatever its order: sets with the same digest revoke the same certificates.
    package let digest: SHA256Digest

    /// True if there is no list in it, so that nothing is checked.
    package var isEmpty: Bool { lists.isEmpty }

    init(_ lists: [RevocationList], paths: [String] = []) {
        self.paths = paths
        guard let stack = OPENSSL_sk_new_null() else { preconditionFailure("out of memory") }
        for list in lists { OPENSSL_sk_push(stack, UnsafeRawPointer(list.pointer)) }
        self.lists = lists
        self.stack = stack
        let digests = Set(lists.map(\.digest)).map(\.bytes)
        digest = SHA256Digest.of(digests.sorted { $0.lexicographicallyPrecedes($1) }.flatMap(\.self))
    }

    deinit { OPENSSL_sk_free(stack) }

    /// Bytes of all files together, at most: a list is hashed for each chain that it judges, at half a
    /// millisecond a megabyte and more.
    static let sizeLimit = 16 << 20

    /// The lists of files: PEM with any number of `X509 CRL` blocks, or DER with one. A file that can't
    /// be read, or that holds a broken list or none, is an error: lists are never silently fewer.
    package static func load(_ paths: [String]) throws(RevocationListError) -> RevocationLists {
        var lists: [RevocationList] = []
        var left = sizeLimit
        for path in paths {
            let bytes: [UInt8]
            do { bytes = try WholeFile.read(path, limit: left) } catch {
                throw error.code == EFBIG ? .tooLong(path: path) : .unreadable(path: path, errno: error.code)
            }
            left -= bytes.count
            do throws(RevocationListFault) { lists += try RevocationList.all(in: bytes, path: path) } catch {
                throw .broken(path: path, reason: error.reason)
            }
        }
        return RevocationLists(lists, paths: paths)
    }

    /// The instant from which a verdict about the chain that was given at `time` no longer stands, since a
    /// list that it came from is out of date; nil if no list was asked.
    package func end(for chain: VerifiedChain, at time: UnixTime) -> UnixTime? {
        chain.certificates.dropLast().compactMap { certificate in
            // Of several lists of one issuer the latest is what verification goes by. One that was out of
            // date before had no say: it is another's of the same name, or not about such certificates.
            lists.filter { $0.isByIssuer(of: certificate) && $0.nextUpdate >= time }.map { $0.nextUpdate + 1 }.max()
        }.min()
    }

    /// Whose each list is and how long it is good, in the order of the files.
    package var terms: [RevocationListTerm] { lists.map(\.term) }

    /// The same of those that judge a certificate of this chain; the anchor is judged by none.
    package func terms(for chain: VerifiedChain) -> [RevocationListTerm] {
        let certificates = chain.certificates.dropLast()
        return lists.filter { list in certificates.contains { list.isByIssuer(of: $0) } }.map(\.term)
    }

    /// The list of the certificate's issuer that is good for longest.
    func term(for certificate: Certificate) -> RevocationListTerm? {
        lists.filter { $0.isByIssuer(of: certificate) }.map(\.term).max { $0.nextUpdate < $1.nextUpdate }
    }

    /// Since when and why a list has the certificate, where one has.
    func entry(for certificate: Certificate) -> (date: UnixTime?, reason: RevocationReason?)? {
        for list in lists {
            if let entry = list.entry(for: certificate) { return entry }
        }
        return nil
    }
}

/// Why revocation lists can't be loaded.
package enum RevocationListError: Error, Sendable, Hashable, CustomStringConvertible {
    case unreadable(path: String, errno: CInt)
    case tooLong(path: String)
    case broken(path: String, reason: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let code): "\(path): \(FileFailure(code: code))"
        case .tooLong(let path):
            "\(path): the lists are longer than \(RevocationLists.sizeLimit >> 20) MiB together, which would slow down "
                + "every handshake"
        case .broken(let path, let reason): "\(path): \(reason)"
        }
    }
}

/// What is wrong with a list, or with the file that should hold one.
struct RevocationListFault: Error {
    let reason: String
}

/// One list.
final class RevocationList: @unchecked Sendable {
    // An X509_CRL sorts its entries under a lock of its own when it is first searched; nothing else
    // changes it.
    let pointer: OpaquePointer
    let digest: SHA256Digest
    /// The file that it is from; empty: none.
    let path: String

    /// The list of exactly these bytes, if it is one that verification makes use of.
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
        // Freed by deinit from here on, whatever is thrown.
        pointer = list
        digest = SHA256Digest.of(der)
        self.path = path
        if left { throw RevocationListFault(reason: "there are bytes after the revocation list") }
        if let reason = unusable { throw RevocationListFault(reason: reason) }
        sort()
    }

    deinit { X509_CRL_free(pointer) }

    /// The first search sorts the entries, which had better not happen within a handshake.
    private func sort() {
        guard let number = ASN1_INTEGER_new() else { return }
        defer { ASN1_INTEGER_free(number) }
        X509_CRL_get0_by_serial(pointer, nil, number)
    }

    /// All lists of a file, at least one.
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
            thisUpdate: X509_CRL_get0_lastUpdate(pointer).flatMap { ASN1Time.seconds($0) } ?? .min, nextUpdate: nextUpdate)
    }

    func isByIssuer(of certificate: Certificate) -> Bool {
        X509_NAME_cmp(X509_CRL_get_issuer(pointer), X509_get_issuer_name(certificate.pointer)) == 0
    }

    /// The last second that it is good for. A list without one was refused when it was read.
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

    /// Why verification would pass over this list without a word, so that it would protect nobody.
    private var unusable: String? {
        if X509_CRL_get_ext_by_NID(pointer, NID_delta_crl, -1) >= 0 {
            return "a delta list, which only changes another one; give the complete list"
        }
        if X509_CRL_get0_lastUpdate(pointer).flatMap({ ASN1Time.seconds($0) }) == nil {
            return "its thisUpdate can't be read"
        }
        guard let next = X509_CRL_get0_nextUpdate(pointer), ASN1Time.seconds(next) != nil else {
            return "it has no nextUpdate (RFC 5280 section 5.1.2.5), so that nobody could tell when it is stale"
        }
        guard X509_CRL_get_ext_by_NID(pointer, NID_issuing_distribution_point, -1) >= 0 else { return nil }
        guard let value = X509_CRL_get_ext_d2i(pointer, NID_issuing_distribution_point, nil, nil) else {
            return "its issuingDistributionPoint can't be read"
        }
        let scope = value.assumingMemoryBound(to: ISSUING_DIST_POINT.self)
        defer { ISSUING_DIST_POINT_free(scope) }
        if scope.pointee.indirectCRL != 0 { return "an indirect list (of several issuers), which isn't supported" }
        if scope.pointee.onlysomereasons != nil { return "a list of some reasons only, which isn't supported" }
        if scope.pointee.onlyattr != 0 { return "a list of attribute certificates, not of certificates" }
        return nil
    }
}
