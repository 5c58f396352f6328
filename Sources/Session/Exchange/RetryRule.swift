/// The reason, limit and conditions for sending a request again. The constants are the only rules.
package struct RetryRule: Sendable, Hashable {
    package enum Reason: UInt8, Sendable, Hashable, CaseIterable {
        case staleConnection, unprocessed, ownConnection, notShared, unconfirmed, redirect, challenge, brokenResponse

        /// In the log, and as a metric's label.
        package var name: String {
            switch self {
            case .staleConnection: "stale_connection"
            case .unprocessed: "unprocessed"
            case .ownConnection: "own_connection"
            case .notShared: "not_shared"
            case .unconfirmed: "unconfirmed"
            case .redirect: "redirect"
            case .challenge: "challenge"
            case .brokenResponse: "broken_response"
            }
        }
    }

    /// Conditions of the previous try.
    package struct Conditions: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The connection had served before, or had idled long.
        package static let reusedConnection = Conditions(rawValue: 1)
        /// No byte of a response had arrived.
        package static let nothingAnswered = Conditions(rawValue: 2)
        /// The whole message is still here, and the request is idempotent or the origin says that it wasn't processed.
        package static let resendable = Conditions(rawValue: 4)
    }

    package let reason: Reason
    package let conditions: Conditions

    /// The origin closed a pooled connection as the request went out (RFC 9110 section 9.2.2, RFC 9112 section 9.3.1).
    /// The second try uses a fresh connection, so there is no third.
    package static let staleConnection = RetryRule(
        reason: .staleConnection, conditions: [.reusedConnection, .nothingAnswered, .resendable])
    /// The origin didn't process the request: it is leaving (GOAWAY), or has enough streams (REFUSED_STREAM); RFC 9113
    /// section 8.7. Any method may be sent again.
    package static let unprocessed = RetryRule(reason: .unprocessed, conditions: [.nothingAnswered, .resendable])
    /// The origin takes the request over HTTP/1.1 only: it requires so (HTTP_1_1_REQUIRED, RFC 9113 section 7), or its
    /// connection takes no upgrades (RFC 8441).
    package static let ownConnection = RetryRule(reason: .ownConnection, conditions: [.nothingAnswered, .resendable])
    /// The shared response turned out not to fit this request (RFC 9111 section 4).
    package static let notShared = RetryRule(reason: .notShared, conditions: [.nothingAnswered, .resendable])
    /// The origin confirmed a version other than the stored one: the request is sent without the condition (RFC 9111
    /// section 4.3.3).
    package static let unconfirmed = RetryRule(reason: .unconfirmed, conditions: .resendable)
    /// The proxy follows a redirect (RFC 9110 section 15.4) by a rule.
    package static let redirect = RetryRule(reason: .redirect, conditions: .resendable)
    /// A rule has the credentials that the origin asks for (RFC 9110 section 11).
    package static let challenge = RetryRule(reason: .challenge, conditions: .resendable)
    /// A download was interrupted: the remainder is requested (RFC 9110 section 14).
    package static let brokenResponse = RetryRule(reason: .brokenResponse, conditions: .resendable)

    /// Tries per exchange, for each reason.
    package struct Limits: Sendable, Hashable {
        /// Redirects of an exchange.
        package var redirects: UInt8
        /// Answered challenges of a hop.
        package var challenges: UInt8
        /// Successive interruptions without progress.
        package var breaks: UInt8
        /// Requests of a hop that the origin did not process.
        package var unprocessed: UInt8

        package init(redirects: UInt8 = 20, challenges: UInt8 = 2, breaks: UInt8 = 8, unprocessed: UInt8 = 4) {
            self.redirects = redirects
            self.challenges = challenges
            self.breaks = breaks
            self.unprocessed = unprocessed
        }
    }

    /// Tries so far, and the state of the current one.
    struct Progress: Sendable, Hashable {
        private let limits: Limits
        private var hasRetriedStale = false
        /// A shared or stored response didn't fit, at this hop. One or the other: a shared response confirms nothing.
        private var hasLeftOthers = false
        private(set) var unprocessed: UInt8 = 0
        private var isAlone = false
        private var redirects: UInt8 = 0
        private var challenges: UInt8 = 0
        private var breaks: UInt8 = 0
        private var known: Conditions = .nothingAnswered
        private(set) var isFirstTry = true

        init(limits: Limits) { self.limits = limits }

        mutating func connected(reused: Bool) {
            known = reused ? [.nothingAnswered, .reusedConnection] : .nothingAnswered
        }

        mutating func answered() { known.remove(.nothingAnswered) }

        mutating func moved() { breaks = 0 }

        func allows(_ rule: RetryRule, resendable: Bool) -> Bool {
            let met = resendable ? known.union(.resendable) : known
            guard met.isSuperset(of: rule.conditions) else { return false }
            return switch rule.reason {
            case .staleConnection: !hasRetriedStale
            case .unprocessed: unprocessed < limits.unprocessed
            case .ownConnection: !isAlone
            case .notShared, .unconfirmed: !hasLeftOthers
            case .redirect: redirects < limits.redirects
            case .challenge: challenges < limits.challenges
            case .brokenResponse: breaks < limits.breaks
            }
        }

        mutating func begin(_ rule: RetryRule, resendable: Bool) -> Bool {
            guard allows(rule, resendable: resendable) else { return false }
            isFirstTry = false
            switch rule.reason {
            case .staleConnection: hasRetriedStale = true
            case .unprocessed: unprocessed += 1
            case .ownConnection: isAlone = true
            case .notShared, .unconfirmed: hasLeftOthers = true
            case .redirect:
                redirects += 1
                hasLeftOthers = false
                challenges = 0
                hasRetriedStale = false
                unprocessed = 0
            case .challenge:
                challenges += 1
                hasRetriedStale = false
            case .brokenResponse: breaks += 1
            }
            return true
        }
    }
}
