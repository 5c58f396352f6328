/// A ``SecurityPolicy`` without its pins. An object, shared by thousands of equal entries.
package final class PolicyTerms: Sendable, Equatable {
    let mode: PinningMode
    let allowsInvalidCertificates: Bool
    let validatesDomainName: Bool
    let position: PinPosition
    let enforcement: Enforcement
    let requirements: TrustRequirements
    let expiry: PinExpiry?
    let rollout: PinRollout?

    init(
        mode: PinningMode, allowsInvalidCertificates: Bool, validatesDomainName: Bool, position: PinPosition,
        enforcement: Enforcement, requirements: TrustRequirements, expiry: PinExpiry?,
        rollout: PinRollout?
    ) {
        self.mode = mode
        self.allowsInvalidCertificates = allowsInvalidCertificates
        self.validatesDomainName = validatesDomainName
        self.position = position
        self.enforcement = enforcement
        self.requirements = requirements
        self.expiry = expiry
        self.rollout = rollout
    }

    /// The settings as words, to be hashed.
    var words: [String] {
        var words = [
            mode.rawValue, position.rawValue, enforcement.rawValue,
            allowsInvalidCertificates ? "invalid" : "valid", validatesDomainName ? "name" : "any",
        ]
        words += requirements.key
        if let expiry { words += ["\(expiry.date)", expiry.action.rawValue] }
        if let rollout { words += rollout.words }
        return words
    }

    /// Compares every field, since equal terms are shared.
    package static func == (one: PolicyTerms, other: PolicyTerms) -> Bool {
        one.mode == other.mode && one.allowsInvalidCertificates == other.allowsInvalidCertificates
            && one.validatesDomainName == other.validatesDomainName && one.position == other.position
            && one.enforcement == other.enforcement && one.requirements == other.requirements
            && one.expiry == other.expiry && one.rollout == other.rollout
    }
}

/// Makes equal values one object, among the last few distinct ones.
package struct SharedValues<Value: AnyObject & Equatable> {
    /// More variants than most files have; a forgotten one is merely not shared.
    private static var limit: Int { 16 }

    private var known: [Value] = []

    package init() {}

    package mutating func shared(_ value: Value) -> Value {
        if let same = known.first(where: { $0 == value }) { return same }
        if known.count == Self.limit { known.removeFirst() }
        known.append(value)
        return value
    }
}
