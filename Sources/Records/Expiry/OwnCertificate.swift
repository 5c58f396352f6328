package import PinproxyConfiguration
package import PinproxySecurity
import PinproxySession
package import PinproxyTLS

/// A certificate that the proxy shows to clients, or signs with.
package struct OwnCertificate: Sendable {
    package let subject: ExpirySubject
    package let certificate: Certificate
    package let place: Place

    /// - Parameter authorities: nil: none.
    package static func all(of snapshot: Snapshot, authorities: AuthoritySet?) -> [OwnCertificate] {
        let (authority, main) = (snapshot.authority.certificatePath, snapshot.files.first ?? "")
        let own: [(ExpirySubject, Certificate?, String)] = [
            (.authority, authorities?.current.certificate, authority),
            (.nextAuthority, authorities?.next?.certificate, authority),
            (.adminCertificate, snapshot.admin.tls?.leaf, main), (.proxyCertificate, snapshot.proxy.tls?.leaf, main),
        ]
        return own.compactMap { subject, certificate, file in
            certificate.map { OwnCertificate(subject: subject, certificate: $0, place: Place(file: file)) }
        }
    }

    /// Nil: the proxy can serve its clients. The admin port's certificate doesn't count.
    package static func unreadiness(_ snapshot: Snapshot, _ authorities: AuthoritySet, at time: UnixTime) -> String? {
        let end = authorities.signer(at: time).end
        if time > end {
            return "the local authority expired \(CalendarDate(end)): hosts can't be intercepted; "
                + AuthorityError.renewal
        }
        guard let shown = snapshot.proxy.tls?.leaf, time > shown.notAfter else { return nil }
        return "the proxy port's certificate (proxy.tls) expired \(CalendarDate(shown.notAfter)): replace it, then "
            + "pinproxy reload"
    }
}

package enum ExpirySubject: String, Sendable, Equatable {
    /// `expires` of the entry.
    case entry
    /// A pinned certificate, or the certificate of a pinned key.
    case pin
    /// For mutual TLS with origins.
    case clientCertificate = "client certificate"
    /// A list of `crl_files`.
    case revocationList = "revocation list"
    /// The policy bundle in force, and the root that says who signs the next one.
    case bundle
    case bundleRoot = "bundle root"
    /// The local authority's.
    case authority
    case nextAuthority = "next authority"
    /// `admin.tls`.
    case adminCertificate = "admin certificate"
    /// `proxy.tls`.
    case proxyCertificate = "proxy certificate"

    package var isOfPolicy: Bool { self == .bundle || self == .bundleRoot }

    package var isOwn: Bool {
        switch self {
        case .entry, .pin, .clientCertificate, .revocationList, .bundle, .bundleRoot: false
        case .authority, .nextAuthority, .adminCertificate, .proxyCertificate: true
        }
    }
}

/// Remarks of `check` and `lint` on the local authority.
package enum AuthorityRemarks {
    /// Problems with the authority; none if it is unreadable.
    package static func problems(in snapshot: Snapshot, at time: UnixTime) -> [Problem] {
        let path = snapshot.authority.certificatePath
        guard let file = try? SmallFile.read(path) else { return [] }
        let place = Place(file: path)
        do {
            let certificates = try Certificate.all(inPEM: file.bytes)
            guard let own = certificates.first else { return [] }
            let known = Array(certificates.dropFirst()) + snapshot.upstream.anchors.certificates
            let review = AuthorityReview(own, issuers: known, at: time)
            return review.remarks(hosts: hosts(of: snapshot), permitted: snapshot.authority.permitted).map {
                Problem(.warning, at: place, $0)
            }
        } catch {
            return [Problem(.warning, at: place, "the local authority can't be read: \(error)")]
        }
    }

    private static func hosts(of snapshot: Snapshot) -> [ServerName] {
        snapshot.hosts.entries.compactMap { entry in
            guard entry.value.action == .intercept, entry.pattern.scope == .exact else { return nil }
            return ServerName(host: entry.pattern.name)
        }
    }
}

/// Finds unusable revocation lists of known issuers: of `upstream.trust` and pins. `lint` examines chains of hosts.
package enum RevocationListReview {
    package struct Finding: Sendable {
        /// Nil: the defaults.
        package let entry: String?
        package let place: Place
        package let defect: RevocationListDefect
        package var message: String { (entry.map { "\($0): " } ?? "") + "\(defect)" }
    }

    package static func findings(in snapshot: Snapshot) -> [Finding] {
        let pinned = snapshot.hosts.values.flatMap { $0.policy.pins.pins.compactMap(\.certificate) }
        let issuers = snapshot.upstream.anchors.certificates + pinned
        var known: Set<RevocationListDefect> = []
        return snapshot.revocationLists.flatMap { lists, entry in
            let place = entry?.place ?? Place(file: snapshot.pinFile ?? "")
            return lists.defects(among: issuers).filter { known.insert($0).inserted }.map {
                Finding(entry: entry?.pattern, place: place, defect: $0)
            }
        }
    }
}
