/// An origin that an exchange asks, with the secrets allowed there: rules' secrets, a client certificate.
///
/// The client names only the first origin; redirects name the later ones. A redirect may name a host that knows this
/// proxy's password, and the client gets the answer from there. So a hop after another origin has rules without secrets
/// and never a client certificate. There is no other way to make one (architecture rule 9).
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

    /// A hop to, or after, another origin. Nil: it would need a client certificate, which isn't used there.
    /// - Parameter trustsParent: a parent proxy may go where it isn't known here what the address is.
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
