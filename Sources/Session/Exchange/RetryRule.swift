/// When a request is sent once more on another connection: why, how often, and what must hold. The rows are all
/// the ways there are.
package struct RetryRule: Sendable, Equatable {
    /// What must hold of the try that failed.
    package struct Conditions: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The connection had served before, or had long waited.
        package static let reusedConnection = Conditions(rawValue: 1)
        /// Nothing of a response had arrived.
        package static let nothingAnswered = Conditions(rawValue: 2)
        /// Every byte that was sent is still here, and sending it twice means the same as sending it once.
        package static let resendable = Conditions(rawValue: 4)
    }

    /// Tries beyond the first, of one exchange.
    package let limit: UInt8
    package let conditions: Conditions

    /// The origin closed a pooled connection as the request went out (RFC 9110 section 9.2.2, RFC 9112 section
    /// 9.3.1). The second try goes over a fresh connection, so that there is no third.
    package static let staleConnection = RetryRule(
        limit: 1, conditions: [.reusedConnection, .nothingAnswered, .resendable])

    /// How often an exchange has tried, and what is known of the present try.
    struct Progress: Sendable, Hashable {
        private var retries: UInt8 = 0
        private var known: Conditions = .nothingAnswered

        var isFirstTry: Bool { retries == 0 }

        mutating func connected(reused: Bool) {
            known = reused ? [.nothingAnswered, .reusedConnection] : .nothingAnswered
        }

        mutating func answered() { known.remove(.nothingAnswered) }

        /// Begins one more try, if the rule allows it.
        mutating func begin(_ rule: RetryRule, resendable: Bool) -> Bool {
            let met = resendable ? known.union(.resendable) : known
            guard retries < rule.limit, met.isSuperset(of: rule.conditions) else { return false }
            retries += 1
            return true
        }
    }
}
