package import PinproxyTLS

/// The date when an entry's pins expire.
///
/// ```yaml
/// expires: 2027-06-30      # from the beginning of that day (UTC) on; or 2027-06-30T12:00:00Z
/// on_expiry: report        # enforce | report | deny
/// ```
///
/// `pin.expiring` is logged from 30 days before. At the date, `on_expiry` applies.
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
    /// Enforced as before, with warnings.
    case enforce
    /// A mismatch is reported, as with `enforcement: report`.
    case report
    /// The host is refused.
    case deny
}
