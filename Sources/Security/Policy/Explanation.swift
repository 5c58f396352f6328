/// A verdict with everything that was looked at on the way to it, for people: what `pinproxy explain` prints.
package struct Explanation: Sendable {
    package let verdict: Verdict
    /// In the order in which they are made. The verdict refuses exactly if one of them failed.
    package let checks: [Check]
}

package struct Check: Sendable, Hashable {
    package enum Outcome: String, Sendable, Hashable {
        case passed
        case failed
        /// It would be refused, if it weren't only reported.
        case reported
        /// Not looked at; the text says why.
        case skipped
    }

    /// What kinds there are; the names are stable.
    package enum Name: String, Sendable, Hashable, CaseIterable {
        case settings
        case expiry
        case tls
        case anchors
        case name
        case dates
        case lifetime
        /// The issuers' lists.
        case revocation
        case ocsp
        case transparency
        case pinnedAnchors = "pinned-anchors"
        case pins
    }

    package let name: Name
    package let outcome: Outcome
    /// What was compared with what: lines without a line break at the end.
    package let lines: [String]

    init(_ name: Name, _ outcome: Outcome, _ lines: [String]) {
        self.name = name
        self.outcome = outcome
        self.lines = lines
    }

    init(_ name: Name, _ outcome: Outcome, _ line: String) { self.init(name, outcome, [line]) }
}
