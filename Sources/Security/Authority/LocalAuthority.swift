import PinproxyAddresses
package import PinproxyTLS

/// The authority that this machine's clients trust, and that issues the proxy's certificate for each host.
///
/// Its key can impersonate any server to those clients, so it stays in a private file, and is refused at start if
/// others can read it. The certificate may issue leaves only (pathlen 0), and is never an anchor for upstreams
/// (``AuthoritySet/anchorsWithoutSelf(_:)``).
package final class LocalAuthority: Sendable {
    package let certificate: Certificate
    /// Its last valid second. Each CONNECT compares it with the clock.
    package let end: UnixTime
    /// Sent after each leaf: the authority and those above it, without a root.
    private let issuers: [Certificate]
    /// The certificate and its issuers, as far as they have name constraints.
    private let constraining: [Certificate]
    /// Nil: a signer has it.
    private let key: PrivateKey?
    /// Shared by all leaves of this process, never the authority's own, never on disk.
    private let leafKey: PrivateKey
    private let leafPublicKey: PublicKey
    private let keyIdentifier: [UInt8]

    /// Seconds that validity begins in the past, for clients with late clocks.
    package static let backdating: Int64 = 24 * 3600
    /// Seconds, backdating included.
    package static let maximumLeafLifetime: Int64 = 90 * 24 * 3600
    /// Seconds that a new authority is valid: ten years.
    package static let lifetime: Int64 = 3652 * 24 * 3600

    /// Takes a matching pair.
    /// - Parameters:
    ///   - keyIdentifier: the certificate's subjectKeyIdentifier.
    ///   - key: nil: a signer has it, and ``identity(of:for:at:)`` takes its leaves.
    init(
        certificate: Certificate, keyIdentifier: [UInt8], issuers: [Certificate], key: PrivateKey?
    ) throws(AuthorityError) {
        self.certificate = certificate
        end = certificate.notAfter
        self.issuers = issuers
        constraining = ([certificate] + issuers).filter { $0.nameConstraints != nil }
        self.key = key
        do { leafKey = try PrivateKey.generateP256() } catch { throw .signing(error) }
        leafPublicKey = leafKey.publicKey
        self.keyIdentifier = keyIdentifier
    }

    static func generateKey() throws(AuthorityError) -> PrivateKey {
        do { return try PrivateKey.generateP256() } catch { throw .signing(error) }
    }

    /// An authority for use within this process: no client trusts it.
    package static func temporary(at unixTime: UnixTime) throws(AuthorityError) -> LocalAuthority {
        try issue(for: generateKey(), machine: "this process", at: unixTime)
    }

    /// A new authority with that key, in memory only.
    /// - Parameters:
    ///   - machine: the host's name, for the subject, which identifies it in trust stores.
    ///   - unixTime: the start of its validity, before ``backdating``.
    ///   - names: the permitted ones; nil: all.
    static func issue(
        for key: PrivateKey, machine: String, at unixTime: UnixTime, permitting names: PermittedNames? = nil
    ) throws(AuthorityError) -> LocalAuthority {
        let publicKey = key.publicKey
        let certificate: Certificate
        do {
            let contents = CertificateContents(
                serialNumber: randomSerial(), commonName: commonName(machine: machine, at: unixTime),
                notBefore: unixTime - backdating, notAfter: unixTime + lifetime,
                extensions: [
                    .issuesLeavesOnly, .signsCertificates, .subjectKeyIdentifier(publicKey.keyIdentifier),
                    .authorityKeyIdentifier(publicKey.keyIdentifier),
                ] + (names.map { [$0.certificateExtension] } ?? []))
            certificate = try Certificate.issue(contents, for: publicKey, by: nil, signingWith: key)
        } catch {
            throw .signing(error)
        }
        return try LocalAuthority(
            certificate: certificate, keyIdentifier: publicKey.keyIdentifier, issuers: [], key: key)
    }

    /// Why clients refuse a leaf for the host: the name constraints of this authority, or of one above it.
    package func violation(by name: ServerName) -> String? {
        for authority in constraining {
            if let violation = authority.nameConstraintViolation(by: name) { return violation }
        }
        return nil
    }

    /// Whether a signer has the key, so that leaves have to be asked for.
    package var isSignedElsewhere: Bool { key == nil }

    /// Issues a leaf for a host and the key of this process's leaves; see ``leaf(for:key:at:lifetime:)``.
    package func mint(
        for name: ServerName, at unixTime: UnixTime, lifetime: Int64
    ) throws(AuthorityError) -> Identity {
        try identity(leaf(for: name, key: leafPublicKey, at: unixTime, lifetime: lifetime))
    }

    /// The request for the signer.
    package func request(for name: ServerName, port: UInt16) -> LeafRequest {
        LeafRequest(authority: certificate.sha256, host: name, port: port, key: leafPublicKey.der)
    }

    /// Takes a signer's leaf, in DER, once a strict client would accept it for the host.
    func identity(of der: [UInt8], for name: ServerName, at unixTime: UnixTime) throws(AuthorityError) -> Identity {
        let leaf: Certificate
        do { leaf = try Certificate(der: der) } catch {
            throw .signing(.failed("the signer's certificate is broken: \(error)"))
        }
        if case .failure(let failure) = verify(leaf, for: name, at: unixTime) {
            throw .signing(.failed("clients would refuse the signer's certificate: \(failure.message)"))
        }
        return try identity(leaf)
    }

    /// Verifies a leaf as a strict client would: usages, path length, key strength, names.
    func verify(
        _ leaf: Certificate, for name: ServerName, at unixTime: UnixTime
    ) -> Result<VerifiedChain, VerificationFailure> {
        let options = VerificationOptions(name: name, time: unixTime, allowsPartialChain: true)
        return TrustAnchors([certificate]).verify(PresentedChain(leaf: leaf), options: options)
    }

    private func identity(_ leaf: Certificate) throws(AuthorityError) -> Identity {
        do { return try Identity(chain: [leaf] + issuers, key: leafKey) } catch { throw .signing(.failed("\(error)")) }
    }

    /// Issues a leaf for a host, named in subjectAltName, and in the CN if it fits (64 bytes, RFC 5280 appendix A.1).
    /// - Parameters:
    ///   - key: the leaf's.
    ///   - unixTime: now; the leaf is valid from ``backdating`` before it.
    ///   - lifetime: seconds from now; cut to ``maximumLeafLifetime`` and the authority's end.
    func leaf(
        for name: ServerName, key leafKey: PublicKey, at unixTime: UnixTime, lifetime: Int64
    ) throws(AuthorityError) -> Certificate {
        guard let key else { throw .signedElsewhere }
        guard unixTime <= end else { throw .expired(end) }
        let notBefore = max(unixTime - Self.backdating, certificate.notBefore)
        // Both ends count as valid.
        let longest = min(notBefore + Self.maximumLeafLifetime - 1, end)
        let text = name.description
        let fitsCommonName = text.utf8.count <= 64
        let alternativeName: CertificateExtension
        switch name {
        case .dns(let host):
            guard Self.isHostName(host) else { throw .unusableName(host) }
            alternativeName = .subjectAltName(dns: host, isCritical: !fitsCommonName)
        case .ip(let literal):
            guard let address = IPAddress(literal) else { throw .unusableName(literal) }
            alternativeName = .subjectAltName(ip: address, isCritical: !fitsCommonName)
        }
        let contents = CertificateContents(
            serialNumber: Self.randomSerial(), commonName: fitsCommonName ? text : nil, notBefore: notBefore,
            notAfter: min(unixTime + max(lifetime, 0), longest),
            extensions: [
                .issuesNothing, .signsHandshakes, .authenticatesServers, .subjectKeyIdentifier(leafKey.keyIdentifier),
                .authorityKeyIdentifier(keyIdentifier), alternativeName,
            ])
        do { return try Certificate.issue(contents, for: leafKey, by: certificate, signingWith: key) } catch {
            throw .signing(error)
        }
    }

    /// 126 random bits, positive, in 16 bytes (RFC 5280: at most 20; CA/Browser Forum: at least 64 bits).
    private static func randomSerial() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        for word in [generator.next(), generator.next()] as [UInt64] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
        bytes[0] = bytes[0] & 0x3f | 0x40
        return bytes
    }

    /// `pinproxy on HOST (2026-11-21)`, within 64 bytes.
    static func commonName(machine: String, at unixTime: UnixTime) -> String {
        let date = " (\(CalendarDate(unixTime)))"
        let start = "pinproxy on "
        let printable = machine.utf8.filter { $0 > 0x20 && $0 < 0x7f }
        let host = printable.prefix(64 - start.utf8.count - date.utf8.count)
        return start + (host.isEmpty ? "this machine" : String(decoding: host, as: UTF8.self)) + date
    }

    /// No wildcard, and encodable: a leaf is for one host.
    static func isHostName(_ name: String) -> Bool {
        !name.isEmpty && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}
