package import TLS

/// The day from which an entry's pins are no longer vouched for by the one who wrote them.
///
/// ```yaml
/// expires: 2027-06-30      # from the beginning of that day (UTC) on; or 2027-06-30T12:00:00Z
/// on_expiry: report        # enforce | report | deny
/// ```
///
/// It is a reminder that acts: `pin.expiring` is logged from 30 days before, and then `on_expiry`
/// says what becomes of a host whose pins nobody has looked after.
package struct PinExpiry: Sendable, Hashable {
    package let date: UnixTime
    package let action: OnExpiry

    package init(date: UnixTime, action: OnExpiry = .enforce) {
        self.date = date
        self.action = action
    }

    package func hasPassed(at time: UnixTime) -> Bool { time >= date }
}

package enum OnExpiry: String, Sendable, Hashable, CaseIterable {
    /// They are enforced as before; only warnings tell.
    case enforce
    /// They no longer refuse, and a mismatch is reported: as `enforcement: report`.
    case report
    /// The host is refused until somebody has looked.
    case deny
}
