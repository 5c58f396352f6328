import CPinproxyOpenSSL

/// Checks a verified chain against revocation lists (RFC 5280 section 6.3.3). A list counts if it has the issuer's name
/// and the issuer's key signed it; its authorityKeyIdentifier may name another certificate of that issuer. It must be
/// current and fully understood. A partial list (``RevocationScope``) counts only for what it has.
///
/// A list that another key signed is ignored if it names that key or certificate; otherwise it refuses.
struct RevocationCheck {
    let lists: RevocationLists
    let chain: [Certificate]
    let time: UnixTime

    private enum Finding {
        case unlisted
        /// Not listed.
        case good(RevocationList)
        case revoked(RevocationList)
        /// The list is unreliable.
        case unknown(RevocationList, code: CInt)
    }

    /// The depths of certificates without a list. The anchor isn't checked: its owner trusts it.
    func unlisted() throws(VerificationFailure) -> [Int] {
        var unlisted: [Int] = []
        for (depth, certificate) in chain.enumerated().dropLast() {
            switch finding(depth) {
            case .unlisted: unlisted.append(depth)
            case .good: break
            case .revoked(let list): throw VerificationFailure(revoked: certificate, depth: depth, by: list)
            case .unknown(let list, let code):
                throw VerificationFailure(list, code: code, about: certificate, depth: depth)
            }
        }
        return unlisted
    }

    func judges() -> [RevocationList] {
        chain.indices.dropLast().compactMap { if case .good(let list) = finding($0) { list } else { nil } }
    }

    /// Lists with an issuer's name that its key didn't sign, with the issuer.
    func strangers() -> [(list: RevocationList, issuer: Certificate)] {
        chain.indices.dropLast().flatMap { depth in
            named(depth).filter { signer(of: $0, above: depth) == nil }.map { ($0, chain[depth + 1]) }
        }
    }

    private func named(_ depth: Int) -> [RevocationList] { lists.lists.filter { $0.isByIssuer(of: chain[depth]) } }

    /// The certificate that signed the list: the issuer, or one of the same name above it.
    private func signer(of list: RevocationList, above depth: Int) -> Certificate? {
        chain[(depth + 1)...].first { list.isNamed(after: $0) && list.isSigned(by: $0) }
    }

    private func finding(_ depth: Int) -> Finding {
        let certificate = chain[depth]
        var own: [(list: RevocationList, signer: Certificate)] = []
        var impostor: RevocationList?
        for list in named(depth) {
            if let signer = signer(of: list, above: depth) {
                own.append((list, signer))
            } else if !list.names(anotherThan: chain[depth + 1]) {
                impostor = impostor ?? list
            }
        }
        let about = own.filter { $0.list.covers(certificate) }
        // The latest reliable one.
        let best = about.max { rank($0.list) < rank($1.list) }
        guard let best else {
            if let list = own.first(where: { $0.list.entry(for: certificate) != nil })?.list { return .revoked(list) }
            return impostor.map { .unknown($0, code: X509_V_ERR_CRL_SIGNATURE_FAILURE) } ?? .unlisted
        }
        guard Self.maySignLists(best.signer) else { return .unknown(best.list, code: X509_V_ERR_KEYUSAGE_NO_CRL_SIGN) }
        if time < best.list.thisUpdate { return .unknown(best.list, code: X509_V_ERR_CRL_NOT_YET_VALID) }
        if time > best.list.nextUpdate { return .unknown(best.list, code: X509_V_ERR_CRL_HAS_EXPIRED) }
        if best.list.hasUnknownExtension {
            return .unknown(best.list, code: X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION)
        }
        return best.list.entry(for: certificate) == nil ? .good(best.list) : .revoked(best.list)
    }

    /// By its keyUsage, if any.
    static func maySignLists(_ issuer: Certificate) -> Bool {
        X509_get_key_usage(issuer.pointer) & UInt32(KU_CRL_SIGN) != 0
    }

    /// By whether it is understood and current, and its date.
    private func rank(_ list: RevocationList) -> (Int, Int, UnixTime) {
        let isCurrent = list.thisUpdate <= time && time <= list.nextUpdate
        return (list.hasUnknownExtension ? 0 : 1, isCurrent ? 1 : 0, list.thisUpdate)
    }
}

extension RevocationLists {
    /// When the first of the lists used at `time` expires; nil if none was used.
    package func end(for chain: VerifiedChain, at time: UnixTime) -> UnixTime? {
        check(chain, at: time).judges().map { $0.nextUpdate + 1 }.min()
    }

    package func terms(for chain: VerifiedChain, at time: UnixTime) -> [RevocationListTerm] {
        unique(check(chain, at: time).judges()).map(\.term)
    }

    /// Lists with an issuer's name that another key signed, which count for nothing.
    package func strangers(to chain: VerifiedChain) -> [RevocationListTerm] {
        unique(check(chain, at: 0).strangers().map(\.list)).map(\.term)
    }

    /// Why lists can't be used for their issuer.
    /// - Parameter issuers: certificates of authorities; each list is compared with those of its name.
    package func defects(among issuers: [Certificate]) -> [RevocationListDefect] {
        lists.compactMap { list in
            let named = issuers.filter { list.isNamed(after: $0) }
            let signers = named.filter { list.isSigned(by: $0) }
            if !named.isEmpty, signers.isEmpty { return RevocationListDefect(term: list.term, kind: .anotherKey) }
            let isForbidden = !signers.isEmpty && !signers.contains { RevocationCheck.maySignLists($0) }
            return isForbidden ? RevocationListDefect(term: list.term, kind: .noRight) : nil
        }
    }

    private func check(_ chain: VerifiedChain, at time: UnixTime) -> RevocationCheck {
        RevocationCheck(lists: self, chain: chain.certificates, time: time)
    }

    private func unique(_ found: [RevocationList]) -> [RevocationList] {
        var known: Set<ObjectIdentifier> = []
        return found.filter { known.insert(ObjectIdentifier($0)).inserted }
    }
}

extension VerificationFailure {
    init(revoked certificate: Certificate, depth: Int, by list: RevocationList) {
        let entry = list.entry(for: certificate)
        let date = entry?.date.map { " on \(CalendarDate($0))" } ?? ""
        let reason = entry?.reason.map { " (\($0))" } ?? ""
        self.init(
            code: X509_V_ERR_CERT_REVOKED, depth: depth, certificate: certificate,
            message: "\(Self.role(depth)) was revoked\(date)\(reason) (\(Self.name(certificate)))")
    }

    init(_ list: RevocationList, code: CInt, about certificate: Certificate, depth: Int) {
        let term = list.term
        let fault =
            code == X509_V_ERR_CRL_HAS_EXPIRED
            ? "expired \(CalendarDate(term.nextUpdate))" : "can't be used: \(Self.openSSLText(code))"
        let name = term.path.isEmpty ? "the CRL of \(term.issuer)" : "\(term)"
        self.init(
            code: code, depth: depth, certificate: certificate,
            message: "\(name) \(fault), so it is unknown whether the \(Self.role(depth)) was revoked "
                + "(\(Self.name(certificate)))")
    }

    private static func name(_ certificate: Certificate) -> String {
        "\(subject(of: certificate)), serial \(certificate.serialNumber)"
    }
}
