package import Configuration
package import Security
package import TLS

/// A certificate that the proxy itself shows, or signs with: clients refuse the proxy once it has expired.
package struct OwnCertificate: Sendable {
    package let subject: ExpirySubject
    package let certificate: Certificate
    /// Where it is configured.
    package let place: Place

    /// - Parameter authorities: nil: those are left out.
    package static func all(of snapshot: Snapshot, authorities: AuthoritySet?) -> [OwnCertificate] {
        let file = Place(file: snapshot.files.first ?? "")
        var found: [OwnCertificate] = []
        if let authorities {
            let place = Place(file: snapshot.authority.certificatePath)
            found.append(OwnCertificate(subject: .authority, certificate: authorities.current.certificate, place: place))
            if let next = authorities.next {
                found.append(OwnCertificate(subject: .nextAuthority, certificate: next.certificate, place: place))
            }
        }
        if let identity = snapshot.admin.tls {
            found.append(OwnCertificate(subject: .adminCertificate, certificate: identity.leaf, place: file))
        }
        if let identity = snapshot.proxy.tls {
            found.append(OwnCertificate(subject: .proxyCertificate, certificate: identity.leaf, place: file))
        }
        return found
    }

    /// Why the proxy can't serve its clients at an instant; nil if it can. The admin port's certificate doesn't count.
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
