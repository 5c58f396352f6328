/// An origin that an exchange asks, with the secrets allowed there. Only the first is the client's choice; a redirect
/// may name a host that knows this proxy's password. A hop after another origin therefore has no secrets and never a
/// client certificate (architecture rule 9).
struct Hop {
    let destination: Destination
    let rules: ExchangeRules?

    /// The client's own destination.
    init(asked destination: Destination, by rules: ExchangeRules?) {
        self.destination = destination
        self.rules = rules
    }

    /// A redirect within the origin.
    init(within destination: Destination, by rules: ExchangeRules?, after scope: AddressScope?) {
        self.destination = destination.limited(to: UpstreamTarget.Reach(within: scope))
        self.rules = rules
    }

    /// A hop to, or after, another origin, perhaps through a parent that may use unknown addresses. Nil: it would need
    /// a client certificate.
    init?(abroad destination: Destination, by rules: ExchangeRules?, after scope: AddressScope?, trustsParent: Bool) {
        guard !destination.target.hasIdentity else { return nil }
        self.destination = destination.limited(to: UpstreamTarget.Reach(abroad: scope, trustsParent: trustsParent))
        self.rules = rules?.withoutSecrets
    }
}

extension UpstreamTarget.Reach {
    /// Another hop at the same host: a parent proxy may be used for it.
    fileprivate init(within scope: AddressScope?) {
        self = scope == .outside ? .outside(orUnknown: true) : .anywhere
    }

    fileprivate init(abroad scope: AddressScope?, trustsParent: Bool) {
        self = scope == .inside ? .anywhere : .outside(orUnknown: trustsParent)
    }
}
