/// What a ``SecurityPolicy`` says besides its pins. An object, since thousands of entries say the same.
package final class PolicyTerms: Sendable, Equatable {
    let mode: PinningMode
    let allowsInvalidCertificates: Bool
    let validatesDomainName: Bool
    let position: PinPosition
    let enforcement: Enforcement
    let requirements: TrustRequirements
    let expiry: PinExpiry?

    init(
        mode: PinningMode, allowsInvalidCertificates: Bool, validatesDomainName: Bool, position: PinPosition,
        enforcement: Enforcement, requirements: TrustRequirements, expiry: PinExpiry?
    ) {
        self.mode = mode
        self.allowsInvalidCertificates = allowsInvalidCertificates
        self.validatesDomainName = validatesDomainName
        self.position = position
        self.enforcement = enforcement
        self.requirements = requirements
        self.expiry = expiry
    }

    /// What tells terms apart, for a digest.
    var words: [String] {
        var words = [
            mode.rawValue, position.rawValue, enforcement.rawValue,
            allowsInvalidCertificates ? "invalid" : "valid", validatesDomainName ? "name" : "any",
        ]
        words += requirements.key
        if let expiry { words += ["\(expiry.date)", expiry.action.rawValue] }
        return words
    }

    /// By every field: entries that differ in one must not come to share it.
    package static func == (one: PolicyTerms, other: PolicyTerms) -> Bool {
        one.mode == other.mode && one.allowsInvalidCertificates == other.allowsInvalidCertificates
            && one.validatesDomainName == other.validatesDomainName && one.position == other.position
            && one.enforcement == other.enforcement && one.requirements == other.requirements && one.expiry == other.expiry
    }
}

/// The last few values that differed: equal ones become one object.
package struct SharedValues<Value: AnyObject & Equatable> {
    /// More ways to write an entry than most files have. What is forgotten is merely not shared.
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
