/// A place that an exchange asks, with what may be lent to it: rules that hold secrets, a client certificate.
///
/// The one who asked has named only the first place. Where a redirect leads is the word of whoever answered; it may name a
/// host that knows this proxy's password, and the answer from there goes to the one who asked the first. So a hop that
/// another origin led to has rules without secrets and never a client certificate. There is no other way to make one
/// (architecture rule 9).
struct Hop {
    let destination: Destination
    let rules: ExchangeRules?

    /// The place that was asked for.
    init(asked destination: Destination, by rules: ExchangeRules?) {
        self.destination = destination
        self.rules = rules
    }

    /// A place that the origin which was asked for has named within itself.
    init(within destination: Destination, by rules: ExchangeRules?, after scope: AddressScope?) {
        self.destination = destination.limited(to: UpstreamTarget.Reach(within: scope))
        self.rules = rules
    }

    /// A place of, or after, another origin. Nil: it asks for a client certificate, which is not lent.
    /// - Parameter trustsParent: a parent proxy may go where it isn't known here what the address is.
    init?(abroad destination: Destination, by rules: ExchangeRules?, after scope: AddressScope?, trustsParent: Bool) {
        guard !destination.target.hasIdentity else { return nil }
        self.destination = destination.limited(to: UpstreamTarget.Reach(abroad: scope, trustsParent: trustsParent))
        self.rules = rules?.withoutSecrets
    }
}

extension UpstreamTarget.Reach {
    /// The host is the one that was asked before, and a parent proxy would ask it of itself again.
    fileprivate init(within scope: AddressScope?) {
        self = scope == .outside ? .outside(orUnknown: true) : .anywhere
    }

    fileprivate init(abroad scope: AddressScope?, trustsParent: Bool) {
        self = scope == .inside ? .anywhere : .outside(orUnknown: trustsParent)
    }
}
