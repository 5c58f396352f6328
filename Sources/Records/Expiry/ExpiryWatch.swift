package import Configuration
package import Security
import Session
package import TLS

/// Finds what ends soon, or has ended: the `expires` of entries, the certificates that pins were read from, those
/// that the proxy shows to origins, revocation lists, and the proxy's own certificates. Pure: the same snapshot and clock, the same list.
package struct ExpiryWatch {
    package struct Finding: Sendable, Equatable {
        package let subject: ExpirySubject
        /// The entry's pattern; nil: the defaults, or none.
        package let entry: String?
        /// Where the entry is written, or the proxy's own certificate.
        package let place: Place
        /// The pin as it was written; the client certificate's subject; the list's file.
        package let name: String?
        package var issuer: String?
        package let date: UnixTime
        /// Whole days to the date, rounded down: negative once it is past.
        package let daysLeft: Int64

        /// `FILE:LINE` of the entry.
        package var location: String { place.line.map { "\(place.file):\($0)" } ?? place.file }
    }

    /// How long before the end it is said.
    package static let notice: Int64 = 30 * 86_400

    /// Revocation lists are replaced before their end: the last quarter of their life, at most a week, is a warning.
    package static func notice(of list: RevocationListTerm) -> Int64 {
        let (life, overflow) = list.nextUpdate.subtractingReportingOverflow(list.thisUpdate)
        return overflow ? 7 * 86_400 : min(max(life / 4, 0), 7 * 86_400)
    }

    /// What ends within its notice of `time`, the most urgent first.
    /// - Parameter authorities: the local ones; nil: they are left out.
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
        return (found + revocationLists(in: snapshot, at: time)).sorted { ($0.date, $0.location) < ($1.date, $1.location) }
    }

    /// The same of the proxy's own certificates alone.
    package static func own(in snapshot: Snapshot, authorities: AuthoritySet?, at time: UnixTime) -> [Finding] {
        OwnCertificate.all(of: snapshot, authorities: authorities).flatMap { own in
            finding(
                own.subject, nil, own.place, own.certificate.subject, own.certificate.notAfter, within: notice, of: time)
        }
    }

    /// The same of revocation lists alone, each once, however many entries name it.
    package static func revocationLists(in snapshot: Snapshot, at time: UnixTime) -> [Finding] {
        var found: [Finding] = []
        var known: Set<RevocationListTerm> = []
        for (lists, entry) in snapshot.revocationLists {
            let place = entry?.place ?? Place(file: snapshot.files.last ?? "")
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
        // A date that can't be read is the first of all.
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
    /// What ends, when, and what follows from it.
    package func message(at now: UnixTime) -> String {
        let distance = TimeDistance(from: now, to: date)
        let end = "\(distance.isPast ? "expired" : "expires") \(CalendarDate(date)), \(distance)"
        return switch subject {
        case .entry: "the pins \(distance.isPast ? "expired" : "expire") \(CalendarDate(date)), \(distance)"
        case .pin: "the pinned certificate \(name ?? "") \(end)"
        case .clientCertificate: "the client certificate \(name ?? "") \(end)"
        case .authority, .nextAuthority:
            "the \(subject == .authority ? "local" : "next local") authority \(name ?? "") \(end); \(AuthorityError.renewal)"
        case .adminCertificate: "the admin port's certificate \(name ?? "") (admin.tls) \(end)"
        case .proxyCertificate: "the proxy port's certificate \(name ?? "") (proxy.tls) \(end)"
        case .revocationList:
            "the CRL of \(issuer ?? "") (\(name ?? "")) \(end): "
                + (distance.isPast ? "every host with a certificate of this issuer is refused"
                    : "every host with a certificate of this issuer will then be refused")
        }
    }
}
