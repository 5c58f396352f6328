package import PinproxyConfiguration
package import PinproxySecurity
import PinproxySession
package import PinproxyTLS

/// Finds what ends soon or has ended: entries, certificates of pins, clients and the proxy, revocation lists, the
/// policy bundle. Pure.
package struct ExpiryWatch {
    package struct Finding: Sendable, Equatable {
        package let subject: ExpirySubject
        /// Nil: the defaults, or none.
        package let entry: String?
        /// The place of the entry, or of the proxy's own certificate.
        package let place: Place
        /// The pin as written; the client certificate's subject; the list's file.
        package let name: String?
        package var issuer: String?
        package let date: UnixTime
        /// Rounded down: negative once it is past.
        package let daysLeft: Int64

        /// `FILE:LINE` of the entry.
        package var location: String { place.line.map { "\(place.file):\($0)" } ?? place.file }
    }

    /// Seconds before the end.
    package static let notice: Int64 = 30 * 86_400

    /// Bundles are short-lived, and signed by people.
    package static let bundleNotice: Int64 = 14 * 86_400

    /// Lists are replaced early: the last quarter of their life, at most a week, is a warning.
    package static func notice(of list: RevocationListTerm) -> Int64 {
        let (life, overflow) = list.nextUpdate.subtractingReportingOverflow(list.thisUpdate)
        return overflow ? 7 * 86_400 : min(max(life / 4, 0), 7 * 86_400)
    }

    /// The most urgent first.
    /// - Parameter authorities: nil: none.
    package static func findings(
        in snapshot: Snapshot, authorities: AuthoritySet? = nil, at time: UnixTime
    ) -> [Finding] {
        var found = own(in: snapshot, authorities: authorities, at: time)
        for entry in snapshot.hosts.values {
            func look(_ subject: ExpirySubject, _ name: String?, _ date: UnixTime?) {
                guard let date else { return }
                found += finding(subject, entry, entry.place, name, date, within: notice, of: time)
            }
            look(.entry, nil, entry.policy.expiry?.date)
            for pin in entry.policy.pins.pins { look(.pin, pin.origin, pin.notAfter) }
            let identity = entry.tls?.identity?.leaf
            look(.clientCertificate, identity?.subject, identity?.notAfter)
        }
        found += bundle(in: snapshot, at: time) + revocationLists(in: snapshot, at: time)
        return found.sorted {
            ($0.date, $0.location) < ($1.date, $1.location)
        }
    }

    /// Findings about the proxy's own certificates.
    package static func own(in snapshot: Snapshot, authorities: AuthoritySet?, at time: UnixTime) -> [Finding] {
        OwnCertificate.all(of: snapshot, authorities: authorities).flatMap { own in
            finding(
                own.subject, nil, own.place, own.certificate.subject, own.certificate.notAfter, within: notice, of: time
            )
        }
    }

    /// Findings about the policy bundle in force. Its timestamp is renewed each day, and always near its end.
    package static func bundle(in snapshot: Snapshot, at time: UnixTime) -> [Finding] {
        guard let bundle = snapshot.bundle, let file = snapshot.policyFile else { return [] }
        let (place, name) = (Place(file: file), "version \(bundle.version)")
        return finding(.bundle, nil, place, name, bundle.ownEnd, within: bundleNotice, of: time)
            + finding(.bundleRoot, nil, place, name, bundle.rootEnd, within: notice, of: time)
    }

    /// Findings about revocation lists, each once.
    package static func revocationLists(in snapshot: Snapshot, at time: UnixTime) -> [Finding] {
        var found: [Finding] = []
        var known: Set<RevocationListTerm> = []
        for (lists, entry) in snapshot.revocationLists {
            let place = entry?.place ?? Place(file: snapshot.pinFile ?? "")
            for term in lists.terms where known.insert(term).inserted {
                let finding = finding(
                    .revocationList, entry, place, term.path, term.nextUpdate, within: notice(of: term), of: time)
                found += finding.map { finding in
                    var finding = finding
                    finding.issuer = term.issuer
                    return finding
                }
            }
        }
        return found
    }

    private static func finding(
        _ subject: ExpirySubject, _ entry: HostEntry?, _ place: Place, _ name: String?, _ date: UnixTime,
        within notice: Int64, of time: UnixTime
    ) -> [Finding] {
        // An unreadable date is the most urgent.
        let (difference, overflow) = date.subtractingReportingOverflow(time)
        let left = overflow ? (date < time ? Int64.min : .max) : difference
        guard left <= notice else { return [] }
        let (days, rest) = left.quotientAndRemainder(dividingBy: 86_400)
        return [
            Finding(
                subject: subject, entry: entry?.pattern, place: place, name: name, date: date,
                daysLeft: rest < 0 ? days - 1 : days)
        ]
    }
}

extension ExpiryWatch.Finding {
    package func message(at now: UnixTime) -> String {
        let distance = TimeDistance(from: now, to: date)
        let end = "\(distance.isPast ? "expired" : "expires") \(CalendarDate(date)), \(distance)"
        return switch subject {
        case .entry: "the pins \(distance.isPast ? "expired" : "expire") \(CalendarDate(date)), \(distance)"
        case .pin: "the pinned certificate \(name ?? "") \(end)"
        case .clientCertificate: "the client certificate \(name ?? "") \(end)"
        case .authority, .nextAuthority:
            """
            the \(subject == .authority ? "local" : "next local") authority \(name ?? "") \(end); \
            \(AuthorityError.renewal)
            """
        case .adminCertificate: "the admin port's certificate \(name ?? "") (admin.tls) \(end)"
        case .proxyCertificate: "the proxy port's certificate \(name ?? "") (proxy.tls) \(end)"
        case .bundle: "the policy bundle, \(name ?? ""), \(end); sign the next one"
        case .bundleRoot: "the root of the policy bundle, \(name ?? ""), \(end); sign the next root"
        case .revocationList:
            "the CRL of \(issuer ?? "") (\(name ?? "")) \(end): "
                + (distance.isPast
                    ? "every host with a certificate of this issuer is refused"
                    : "every host with a certificate of this issuer will then be refused")
        }
    }
}
