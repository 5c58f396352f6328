package import PinproxyTLS

/// Finds why clients refuse the local authority's leaves, or will soon, by its certificate and those above it.
package struct AuthorityReview {
    private let chain: [Certificate]
    private let time: UnixTime

    /// How early the end is reported: every client must learn to trust a new authority.
    package static let notice: Int64 = 30 * 86_400

    /// - Parameter issuers: candidates for those above it, e.g. from its file and the trust store.
    package init(_ certificate: Certificate, issuers: [Certificate], at time: UnixTime) {
        chain = certificate.chain(through: issuers)
        self.time = time
    }

    /// The findings, one line each, for hosts of the pin file.
    /// - Parameter permitted: the name constraints of the configuration.
    package func remarks(hosts: [ServerName], permitted: PermittedNames? = nil) -> [String] {
        let isAsConfigured =
            permitted != nil && chain.first?.extensionValue(.nameConstraints) == permitted?.certificateExtension.value
        var found = [ending, pathLength].compactMap(\.self) + constraints(hosts, isAsConfigured: isAsConfigured)
        if permitted != nil, !isAsConfigured {
            found.append(
                "the local authority doesn't have the name constraints of the configuration "
                    + "(authority.name_constraints), which a new one gets: \(AuthorityError.renewal)")
        }
        // An expired chain is refused for that alone.
        if ending == nil, let issuers { found.append(issuers) }
        return found
    }

    private var ending: String? {
        guard let own = chain.first else { return nil }
        if time < own.notBefore { return "the local authority is not valid before \(CalendarDate(own.notBefore))" }
        let (left, overflow) = own.notAfter.subtractingReportingOverflow(time)
        guard overflow ? own.notAfter < time : left <= Self.notice else { return nil }
        let distance = TimeDistance(from: time, to: own.end)
        let end = "\(distance.isPast ? "expired" : "expires") \(CalendarDate(own.notAfter)), \(distance)"
        return "the local authority \(end); \(AuthorityError.renewal)"
    }

    /// Each authority above counts those below it (RFC 5280 section 4.2.1.9).
    private var pathLength: String? {
        for (count, issuer) in chain.enumerated().dropFirst() {
            let below = chain.prefix(count).filter { !$0.isSelfIssued }.count
            guard let length = issuer.pathLength, length < below else { continue }
            let allowed = Count(length, "authority", plural: "authorities")
            return
                "\(name(issuer)) allows \(allowed) below it (path length \(length)), and with the local authority "
                + "there \(below == 1 ? "is 1" : "are \(below)"): clients that trust it refuse the proxy's certificates"
        }
        return nil
    }

    private func constraints(_ hosts: [ServerName], isAsConfigured: Bool) -> [String] {
        chain.enumerated().compactMap { depth, authority in
            guard let text = authority.nameConstraints else { return nil }
            let refused = hosts.filter { authority.nameConstraintViolation(by: $0) != nil }
            if depth == 0, isAsConfigured, refused.isEmpty { return nil }
            let listed = refused.prefix(3).map(\.description).joined(separator: ", ")
            let more = refused.count > 3 ? " and \(refused.count - 3) more" : ""
            return
                "the name constraints of \(name(authority)) hold for the proxy's certificates (\(text)): clients "
                + "refuse those for other hosts" + (refused.isEmpty ? "" : ", such as \(listed)\(more) of the pin file")
        }
    }

    /// The authorities above, as seen by a client that trusts the top one.
    private var issuers: String? {
        guard chain.count > 1, let top = chain.last else { return nil }
        return TrustAnchors([top]).failure(of: chain[0], by: Array(chain.dropFirst().dropLast()), at: time).map {
            "clients that trust \(name(top)) refuse the local authority: \($0.message)"
        }
    }

    private func name(_ certificate: Certificate) -> String {
        certificate.subject.isEmpty ? "an authority without a subject" : certificate.subject
    }
}
