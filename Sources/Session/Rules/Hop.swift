/// An origin that an exchange asks, with the secrets allowed there: rules' secrets, a client certificate.
///
/// The client names only the first origin. A redirect may name a host that knows this proxy's password, so a hop after
/// another origin has no secrets and never a client certificate (architecture rule 9).
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

    /// A hop to, or after, another origin, perhaps by a parent that may go to unknown addresses. Nil: it would need a
    /// client certificate.
    init?(abroad destination: Destination, by rules: ExchangeRules?, after scope: AddressScope?, trustsParent: Bool) {
        guard !destination.target.hasIdentity else { return nil }
        self.destination = destination.limited(to: UpstreamTarget.Reach(abroad: scope, trustsParent: trustsParent))
        self.rules = rules?.withoutSecrets
    }
}

extension UpstreamTarget.Reach {
    /// The host is the one asked before: a parent proxy may ask it again.
    fileprivate init(within scope: AddressScope?) {
        self = scope == .outside ? .outside(orUnknown: true) : .anywhere
    }

    fileprivate init(abroad scope: AddressScope?, trustsParent: Bool) {
        self = scope == .inside ? .anywhere : .outside(orUnknown: trustsParent)
    }
}
