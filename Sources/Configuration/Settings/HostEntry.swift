package import PinproxySecurity
package import PinproxySession
package import Synchronization

/// One entry of the pin file, perhaps of 100,000. A class: a look-up copies nothing. They share ``EntryTerms``.
package final class HostEntry: Sendable {
    /// Applies where the action verifies certificates; without pins elsewhere.
    package let policy: SecurityPolicy
    private let terms: EntryTerms
    /// The slot for counts of exchanges with the host; ``noSlot`` until it is assigned.
    package let slot = Atomic<Int>(noSlot)
    package static let noSlot = -1
    // UInt32 is as far as the lines of a file and their lengths are counted.
    private let number: UInt32
    private let writtenLine: UInt32
    private let writtenColumn: UInt32

    /// - Parameter number: identifies the entry's own among the terms' patterns.
    package init(policy: SecurityPolicy, terms: EntryTerms, number: Int, line: Int, column: Int) {
        self.policy = policy
        self.terms = terms
        self.number = UInt32(clamping: number)
        writtenLine = UInt32(clamping: line)
        writtenColumn = UInt32(clamping: column)
    }

    /// An entry that belongs to no pin file.
    package convenience init(
        for pattern: HostPattern, action: HostAction, policy: SecurityPolicy, file: String, line: Int, column: Int
    ) {
        let alone = HostPatterns.number([pattern])
        self.init(
            policy: policy, terms: EntryTerms(action: action, patterns: alone.patterns, file: file),
            number: alone.numbers[0],
            line: line, column: column)
    }

    convenience init(_ other: HostEntry, policy: SecurityPolicy) {
        self.init(policy: policy, terms: other.terms, number: Int(other.number), line: other.line, column: other.column)
    }

    package var action: HostAction { terms.action }
    /// The host's TLS settings; nil where the action doesn't use TLS.
    package var tls: ClientTLS? { terms.tls }
    package var reportURI: ServiceURL? { terms.reportURI }
    /// A client gets the refusal inside its TLS, as from the origin (`on_refusal: page`).
    package var showsRefusals: Bool { terms.showsRefusals }
    /// The chains seen are recorded, to make pins of them (`record: true`).
    package var records: Bool { terms.records }
    /// The rules for exchanges with the host; nil: none are written.
    package var rules: RuleLayers? { terms.rules }
    /// The clients that may use the entry; nil: all.
    package var clients: EntryClients? { terms.clients }

    /// Its pattern, in human-readable form. Computed at each call: a connection calls once.
    package var pattern: String { terms.patterns.pattern(Int(number)).description }
    package var file: String { terms.file }
    package var line: Int { Int(writtenLine) }
    package var column: Int { Int(writtenColumn) }

    package var place: Place { Place(file: file, line: line, column: column) }

    /// `FILE:LINE`; no line where it is written in no file.
    package var location: String { line > 0 ? "\(file):\(line)" : file }
}

/// The settings of a ``HostEntry`` besides its pattern and policy.
package final class EntryTerms: Sendable, Equatable {
    let action: HostAction
    let tls: ClientTLS?
    let reportURI: ServiceURL?
    let showsRefusals: Bool
    let records: Bool
    let rules: RuleLayers?
    let clients: EntryClients?
    /// The list with the entry's pattern.
    let patterns: HostPatterns
    let file: String

    package init(
        action: HostAction, tls: ClientTLS? = nil, reportURI: ServiceURL? = nil, showsRefusals: Bool = false,
        records: Bool = false, rules: RuleLayers? = nil, clients: EntryClients? = nil, patterns: HostPatterns,
        file: String
    ) {
        self.action = action
        self.tls = tls
        self.reportURI = reportURI
        self.showsRefusals = showsRefusals
        self.records = records
        self.rules = rules
        self.clients = clients
        self.patterns = patterns
        self.file = file
    }

    /// By every field, as ``PolicyTerms``.
    package static func == (one: EntryTerms, other: EntryTerms) -> Bool {
        one.action == other.action && one.tls === other.tls && one.reportURI == other.reportURI
            && one.showsRefusals == other.showsRefusals && one.records == other.records && one.rules === other.rules
            && one.clients == other.clients && one.patterns === other.patterns && one.file == other.file
    }
}

/// The action for a host (`action` in pins.yaml).
package enum HostAction: String, Sendable, CaseIterable {
    /// The proxy terminates TLS on both sides, and the policy decides.
    case intercept
    /// Bytes pass through untouched; the client's own TLS decides.
    case tunnel
    /// Bytes pass through untouched, once the policy has accepted what the server shows.
    case verifyTunnel = "verify-tunnel"
    case deny

    /// The policy looks at the server's certificates.
    package var isJudged: Bool { self == .intercept || self == .verifyTunnel }
}
