/// A verdict with all checks: what `pinproxy explain` prints.
package struct Explanation: Sendable {
    package let verdict: Verdict
    /// In order. The verdict refuses exactly if one failed.
    package let checks: [Check]
}

package struct Check: Sendable, Hashable {
    package enum Outcome: String, Sendable, Hashable {
        case passed
        case failed
        /// Would be refused if it weren't only reported.
        case reported
        /// Skipped, with the reason in the text.
        case skipped
    }

    /// Stable names.
    package enum Name: String, Sendable, Hashable, CaseIterable {
        case settings
        case expiry
        case enforcement
        case tls
        case anchors
        case name
        case dates
        case lifetime
        case revocation
        case ocsp
        case transparency
        case pinnedAnchors = "pinned-anchors"
        case pins
    }

    package let name: Name
    package let outcome: Outcome
    /// The compared values, in lines without a line break.
    package let lines: [String]

    init(_ name: Name, _ outcome: Outcome, _ lines: [String]) {
        self.name = name
        self.outcome = outcome
        self.lines = lines
    }

    init(_ name: Name, _ outcome: Outcome, _ line: String) { self.init(name, outcome, [line]) }
}
