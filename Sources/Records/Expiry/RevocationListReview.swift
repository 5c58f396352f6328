package import Configuration
import Security
import Session
package import TLS

/// Finds revocation lists that can't serve for their issuer, by the certificates of `upstream.trust` and of pins. Other
/// issuers aren't known here; `lint` looks at the chains of hosts.
package enum RevocationListReview {
    package struct Finding: Sendable {
        /// The entry's pattern; nil: the defaults.
        package let entry: String?
        /// Where the list is written.
        package let place: Place
        package let defect: RevocationListDefect
        package var message: String { (entry.map { "\($0): " } ?? "") + "\(defect)" }
    }

    package static func findings(in snapshot: Snapshot) -> [Finding] {
        let pinned = snapshot.hosts.values.flatMap { $0.policy.pins.pins.compactMap(\.certificate) }
        let issuers = snapshot.upstream.anchors.certificates + pinned
        var known: Set<RevocationListDefect> = []
        return snapshot.revocationLists.flatMap { lists, entry in
            let place = entry?.place ?? Place(file: snapshot.files.last ?? "")
            return lists.defects(among: issuers).filter { known.insert($0).inserted }.map {
                Finding(entry: entry?.pattern, place: place, defect: $0)
            }
        }
    }
}
