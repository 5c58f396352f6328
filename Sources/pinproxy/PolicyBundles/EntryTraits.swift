internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession
internal import PinproxyTLS

/// The settings of an entry, as comparable text.
struct EntryTraits {
    /// By the key of the pin file that says it. Left out is what has no effect with the action, and what holds where
    /// nothing is written.
    private(set) var values: [String: String] = [:]
    private(set) var pins: [String] = []
    /// When, where or after what its pins are enforced; also among the values.
    private(set) var rollout: String?

    init(_ entry: HostEntry) {
        values["action"] = entry.action.rawValue
        if entry.action.isJudged { judge(entry.policy) }
        values["on_refusal"] = entry.showsRefusals ? "page" : nil
        values["report_uri"] = entry.reportURI?.description
        values["record"] = entry.records ? "true" : nil
        values["clients"] = entry.clients?.description
        if let rules = entry.rules { shape(rules.entry) }
    }

    /// The traits of hosts without an entry.
    init(defaults policy: PolicyFiles) {
        values["action"] = policy.defaultAction.rawValue
        require(policy.defaultPolicy.requirements)
        if let rules = policy.defaultRules { shape(rules.defaults) }
    }

    private mutating func judge(_ policy: SecurityPolicy) {
        values["pinning"] = policy.mode.rawValue
        if policy.mode != .none {
            values["enforcement"] = policy.enforcement.rawValue
            values["position"] = policy.position == .any ? nil : policy.position.rawValue
            if let rollout = policy.rollout {
                values[rollout.key] = rollout.written
                self.rollout = "\(rollout.key) \(rollout.written)"
            }
        }
        values["allow_invalid_certificates"] = policy.allowsInvalidCertificates ? "true" : nil
        values["validates_domain_name"] = policy.validatesDomainName ? nil : "false"
        if let expiry = policy.expiry {
            values["expires"] = "\(CalendarDate(expiry.date))"
            values["on_expiry"] = expiry.action.rawValue
        }
        require(policy.requirements)
        pins = policy.pins.pins.map(\.description)
    }

    private mutating func require(_ requirements: TrustRequirements) {
        values["min_tls"] = requirements.minimumTLS == .tls13 ? "1.3" : nil
        values["ocsp"] = requirements.stapling == .ifStapled ? nil : requirements.stapling.rawValue
        values["crl_files"] = requirements.revocationLists.map { $0.paths.joined(separator: ", ") }
        values["ct_log_list"] = requirements.transparencyLogs.map { "sha256 \($0.digest.hex.prefix(16))" }
        values["max_leaf_lifetime"] = requirements.maximumLeafLifetime.map { "\($0 / 86_400)d" }
    }

    private mutating func shape(_ block: RuleBlock) {
        write(block.own, below: "")
        for (number, rule) in block.rules.enumerated() {
            let name = "rules[\(number)]"
            values[name] = rule.requests
            write(rule.layer, below: "\(name).")
        }
    }

    private mutating func write(_ layer: RuleLayer, below prefix: String) {
        write(layer.session, below: prefix)
        write(layer.request, below: prefix)
        write(layer.response, below: prefix)
        write(layer.cache, below: prefix)
    }

    private mutating func write<Rules: RuleTable>(_ table: WrittenTable<Rules>, below prefix: String) {
        let name = Rules.name.isEmpty ? "" : "\(Rules.name)."
        for key in table.places.keys { values["\(prefix)\(name)\(key.rawValue)"] = table.values.text(of: key) }
    }
}

/// One key that differs; nil: it isn't said.
struct TraitChange: Encodable, Equatable {
    let key: String
    let before: String?
    let after: String?

    /// `enforcement: report -> enforce`
    var text: String { "\(key): \((before ?? "not set").printable) -> \((after ?? "not set").printable)" }

    /// In the order of the keys.
    static func between(_ old: EntryTraits, _ new: EntryTraits) -> [TraitChange] {
        Set(old.values.keys).union(new.values.keys).sorted().compactMap { key in
            let (before, after) = (old.values[key], new.values[key])
            return before == after ? nil : TraitChange(key: key, before: before, after: after)
        }
    }
}
