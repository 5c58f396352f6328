package import Configuration
import Security
import Session
package import TLS

/// Finds what ends soon, or has ended: the `expires` of entries, the certificates that pins were read
/// from, and those that the proxy shows to origins. Pure: the same snapshot and clock, the same list.
package struct ExpiryWatch {
    package enum Subject: String, Sendable, Equatable {
        /// `expires` of the entry.
        case entry
        /// The certificate that a pin is, or whose key it is.
        case pin
        /// What the proxy proves itself with in mutual TLS.
        case clientCertificate = "client certificate"
    }

    package struct Finding: Sendable, Equatable {
        package let subject: Subject
        /// The entry's pattern.
        package let entry: String
        /// `FILE:LINE` of the entry.
        package let location: String
        /// The pin as it was written; the client certificate's subject.
        package let name: String?
        package let date: UnixTime
        /// Whole days to the date; negative once it is past.
        package let daysLeft: Int64
    }

    /// How long before the end it is said.
    package static let notice: Int64 = 30 * 86_400

    /// What ends within ``notice`` of `time`, the most urgent first.
    package static func findings(in snapshot: Snapshot, at time: UnixTime) -> [Finding] {
        var found: [Finding] = []
        for entry in snapshot.hosts.entries.lazy.map(\.value) {
            func look(_ subject: Subject, _ name: String?, _ date: UnixTime?) {
                guard let date else { return }
                // A date that can't be read is the first of all.
                let (difference, overflow) = date.subtractingReportingOverflow(time)
                let left = overflow ? (date < time ? Int64.min : .max) : difference
                guard left <= notice else { return }
                let (days, rest) = left.quotientAndRemainder(dividingBy: 86_400)
                found.append(
                    Finding(
                        subject: subject, entry: entry.pattern, location: entry.location, name: name, date: date,
                        daysLeft: rest < 0 ? days - 1 : days))
            }
            look(.entry, nil, entry.policy.expiry?.date)
            for pin in entry.policy.pins.pins { look(.pin, pin.origin, pin.notAfter) }
            let identity = entry.tls?.identity?.leaf
            look(.clientCertificate, identity?.subject, identity?.notAfter)
        }
        return found.sorted { ($0.date, $0.location) < ($1.date, $1.location) }
    }
}
