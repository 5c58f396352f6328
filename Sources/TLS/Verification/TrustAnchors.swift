import CPinproxyOpenSSL
import Glibc
import Synchronization

/// Certificates that chains may end at. Immutable, for all threads.
package final class TrustAnchors: @unchecked Sendable {
    // An X509_STORE locks its lookups, and is filled in init only.
    let store: OpaquePointer
    private let places: [SHA256Digest: Int]
    let proven = ProvenChains()

    /// Distinct, in the order given.
    package let certificates: [Certificate]

    /// Independent of the order: sets with the same digest trust the same certificates.
    package let digest: SHA256Digest

    package init(_ certificates: [Certificate]) {
        guard let store = X509_STORE_new() else { preconditionFailure("out of memory") }
        var places: [SHA256Digest: Int] = [:]
        var kept: [Certificate] = []
        for certificate in certificates {
            let fingerprint = certificate.sha256
            guard places[fingerprint] == nil else { continue }
            places[fingerprint] = kept.count
            X509_STORE_add_cert(store, certificate.pointer)
            kept.append(certificate)
        }
        self.store = store
        self.certificates = kept
        self.places = places
        digest = SHA256Digest.of(places.keys.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }.flatMap(\.self))
    }

    deinit { X509_STORE_free(store) }

    package func contains(_ certificate: Certificate) -> Bool { places[certificate.sha256] != nil }

    package func certificate(withDigest digest: SHA256Digest) -> Certificate? {
        places[digest].map { certificates[$0] }
    }

    /// The bundles of Debian, Fedora and Alpine; the first that exists counts.
    package static let systemBundles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
    ]

    /// The machine's bundle. Ignores SSL_CERT_FILE, which `pinproxy env` sets to the proxy's own authority.
    package static func system(bundles: [String] = systemBundles) throws(AnchorsError) -> TrustAnchors {
        guard let path = bundles.first(where: { access($0, F_OK) == 0 }) else { throw .noSystemBundle(tried: bundles) }
        let bytes = try read(path)
        let bundle = SHA256Digest.of(bytes)
        if let known = parsed.withLock({ $0?.bundle == bundle ? $0?.anchors : nil }) { return known }
        let anchors = TrustAnchors(try parse(bytes, of: path))
        parsed.withLock { $0 = (bundle, anchors) }
        return anchors
    }

    /// As last parsed. A reload mostly finds the same bundle.
    private static let parsed = Mutex<(bundle: SHA256Digest, anchors: TrustAnchors)?>(nil)

    private static let sizeLimit = 64 << 20

    /// Loads the machine's anchors and those of PEM files. An unreadable, broken or empty file is an error.
    package static func load(system: Bool, files: [String]) throws(AnchorsError) -> TrustAnchors {
        var sets = system ? [try Self.system()] : []
        for path in files { sets.append(TrustAnchors(try parse(read(path), of: path))) }
        return TrustAnchors.all(of: sets)
    }

    /// Merges several sets; a single one stays as it is.
    package static func all(of sets: [TrustAnchors]) -> TrustAnchors {
        sets.count == 1 ? sets[0] : TrustAnchors(sets.flatMap(\.certificates))
    }

    private static func read(_ path: String) throws(AnchorsError) -> [UInt8] {
        do { return try SmallFile.read(path, limit: sizeLimit).bytes } catch { throw .unreadable(path: path, error) }
    }

    private static func parse(_ bytes: [UInt8], of path: String) throws(AnchorsError) -> [Certificate] {
        do { return try Certificate.all(inPEM: bytes) } catch { throw .broken(path: path, error) }
    }

    /// Why the anchor or authority can't be in a valid chain at an instant, if so.
    /// - Parameter issuers: candidates between the authority and the anchors.
    package func failure(
        of authority: Certificate, by issuers: [Certificate] = [], at time: UnixTime
    ) -> VerificationFailure? {
        for (depth, certificate) in ([authority] + issuers).enumerated() {
            let fault = CertificateRules.unreadable(certificate).map { RuleFault.malformed($0) }
            if let fault = fault ?? KeyRules.fault(of: certificate) {
                return VerificationFailure(fault, depth: depth, certificate: certificate)
            }
        }
        let options = VerificationOptions(name: nil, time: time, allowsPartialChain: true)
        switch build(from: authority, by: issuers, for: .anchor, options: options) {
        case .success: return nil
        case .failure(let failed): return failed.failure
        }
    }

    /// Without a certificate's key: the proxy's own authority must never vouch for an upstream.
    package func excluding(_ certificate: Certificate) -> TrustAnchors {
        let key = certificate.publicKeyDER
        guard certificates.contains(where: { $0.publicKeyDER == key }) else { return self }
        return TrustAnchors(certificates.filter { $0.publicKeyDER != key })
    }
}

package enum AnchorsError: Error, Sendable, Hashable, CustomStringConvertible {
    case noSystemBundle(tried: [String])
    case unreadable(path: String, FileProblem)
    case broken(path: String, CertificateError)

    package var description: String {
        switch self {
        case .noSystemBundle(let tried):
            """
            the machine has no bundle of trusted certificates (looked for \(tried.joined(separator: ", "))): install \
            ca-certificates
            """
        case .unreadable(let path, let problem): "\(path): \(problem)"
        case .broken(let path, let error): "\(path): \(error)"
        }
    }
}
