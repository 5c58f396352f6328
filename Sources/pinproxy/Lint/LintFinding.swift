internal import PinproxyConfiguration

/// A finding of `pinproxy lint` about one line of the configuration.
struct LintFinding: Hashable {
    /// The checks; their names are stable.
    enum Rule: String, CaseIterable {
        case insecure
        case configuration
        case publicSuffix = "public-suffix"
        case noBackup = "no-backup"
        case shadowed
        case weakClients = "weak-clients"
        case entryExpires = "entry-expires"
        case certificateExpires = "certificate-expires"
        case crlExpires = "crl-expires"
        case bundleExpires = "bundle-expires"
        case refusedNow = "refused-now"
        case pinMismatch = "pin-mismatch"
        case pinNotInChain = "pin-not-in-chain"
        case pinOutOfPosition = "pin-out-of-position"
        case noUpgrades = "no-upgrades"
        case noRevocationList = "no-revocation-list"
        case authority
        case deadPin = "dead-pin"
        case reportOnly = "report-only"
        case misses
        case unusedRule = "unused-rule"
        case refusedResponses = "refused-responses"
        case canBeEnforced = "can-be-enforced"
        case refusalPage = "refusal-page"
        case sharedCache = "shared-cache"
        case reportedCache = "reported-cache"
        case notChecked = "not-checked"
        case history
    }

    enum Severity: String {
        /// A problem, now or later.
        case warning
        /// Worth knowing; may be intended.
        case note
    }

    let rule: Rule
    let severity: Severity
    let place: Place
    /// The pattern of the entry that it is about.
    let entry: String?
    let message: String
    let fix: String

    init(
        _ rule: Rule, _ severity: Severity = .warning, at place: Place, entry: String? = nil, _ message: String,
        fix: String
    ) {
        self.rule = rule
        self.severity = severity
        self.place = place
        self.entry = entry
        self.message = message
        self.fix = fix
    }

    init(_ rule: Rule, _ severity: Severity = .warning, of entry: HostEntry, _ message: String, fix: String) {
        self.init(rule, severity, at: entry.place, entry: entry.pattern, "\(entry.pattern): \(message)", fix: fix)
    }

    /// In the shape that editors and compilers share, with the fix below.
    var text: String {
        "\(place): \(severity.rawValue): \(message.printable(longest: .max)) [\(rule.rawValue)]\n    fix: \(fix)"
    }
}

extension LintFinding: Encodable {
    private enum CodingKeys: String, CodingKey {
        case rule, severity, file, line, column, entry, message, fix
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: CodingKeys.self)
        try object.encode(rule.rawValue, forKey: .rule)
        try object.encode(severity.rawValue, forKey: .severity)
        try object.encode(place.file, forKey: .file)
        try object.encode(place.line, forKey: .line)
        try object.encode(place.column, forKey: .column)
        try object.encode(entry, forKey: .entry)
        try object.encode(message, forKey: .message)
        try object.encode(fix, forKey: .fix)
    }
}
