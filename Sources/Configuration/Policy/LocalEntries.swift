internal import PinproxyAddresses
internal import PinproxySecurity
internal import PinproxyTLS

/// Checks that a machine's own entries don't weaken a bundle's policy. They may add hosts and tighten it. Each is
/// compared with what would hold for its hosts without it.
struct LocalEntries {
    private struct Form: Hashable {
        let scope: HostPattern.Scope
        let name: Substring
    }

    private let bundle: [Form: [(pattern: HostPattern, entry: HostEntry)]]
    private let defaults: PinDefaults

    init(beside bundle: [(pattern: HostPattern, entry: HostEntry)], _ defaults: PinDefaults) {
        self.bundle = Dictionary(grouping: bundle) { Form(scope: $0.pattern.scope, name: $0.pattern.name[...]) }
        self.defaults = defaults
    }

    /// The weakness of a local entry, in human-readable form; nil: none.
    func weakness(of own: HostEntry, _ pattern: HostPattern) -> String? {
        // Each contains all names of the own pattern: the most specific one decides, on its port.
        for (other, entry) in broader(than: pattern).sorted(by: { $0.pattern.isMoreSpecific(than: $1.pattern) }) {
            if let reason = Stance(entry, beside: defaults).weakness(of: own) {
                return "it is weaker than the bundle's entry in \(entry.location): \(reason)"
            }
            if other.port == nil || other.port == pattern.port { return nil }
        }
        // Some of its hosts have no entry in the bundle.
        return Stance(defaults).weakness(of: own).map { "it is weaker than the bundle's defaults: \($0)" }
    }

    /// The bundle's entries that would decide about some of its hosts.
    private func broader(than pattern: HostPattern) -> [(pattern: HostPattern, entry: HostEntry)] {
        var forms: [Form] = []
        if pattern.scope == .exact {
            forms.append(Form(scope: .exact, name: pattern.name[...]))
            // NAT64: an address without an entry follows its IPv4 address.
            if let translated = IPAddress(pattern.name)?.translated {
                forms.append(Form(scope: .exact, name: translated.description[...]))
            }
            if !pattern.isAddress, let parent = Self.parent(of: pattern.name[...]) {
                forms.append(Form(scope: .oneLabel, name: parent))
            }
        }
        if pattern.scope == .oneLabel { forms.append(Form(scope: .oneLabel, name: pattern.name[...])) }
        if !pattern.isAddress {
            var name: Substring? = pattern.name[...]
            while let above = name {
                forms.append(Form(scope: .subtree, name: above))
                name = Self.parent(of: above)
            }
        }
        return forms.flatMap { bundle[$0] ?? [] }.filter { other, _ in
            other.port == nil || other.port == pattern.port
                // It goes before others of its scope by its port alone.
                || pattern.port == nil && (other.scope != pattern.scope || other.name != pattern.name)
        }
    }

    private static func parent(of name: Substring) -> Substring? {
        name.firstIndex(of: ".").map { name[name.index(after: $0)...] }
    }
}

/// The demands of an entry, or of the defaults, on a host.
private struct Stance {
    let action: HostAction
    let policy: SecurityPolicy
    let clients: EntryClients?
    let reportURI: ServiceURL?
    /// Whether the bundle's entry has rules; false: those of the defaults apply.
    let hasRules: Bool
    let defaultRules: RuleLayers?
    let isOfEntry: Bool

    init(_ entry: HostEntry, beside defaults: PinDefaults) {
        (action, policy, clients, reportURI) = (entry.action, entry.policy, entry.clients, entry.reportURI)
        hasRules = entry.rules !== defaults.rules && entry.rules != nil
        defaultRules = defaults.rules
        isOfEntry = true
    }

    init(_ defaults: PinDefaults) {
        (action, policy, clients) = (defaults.action, SecurityPolicy(requirements: defaults.requirements), nil)
        (hasRules, defaultRules, reportURI, isOfEntry) = (false, defaults.rules, defaults.reportURI, false)
    }

    /// Nil: the entry is as strict.
    func weakness(of own: HostEntry) -> String? {
        // Nothing is stricter.
        if own.action == .deny { return nil }
        switch action {
        case .deny: return "the host is denied there"
        case .intercept where own.action != .intercept, .verifyTunnel where own.action == .tunnel:
            return "action is \(action.rawValue) there, and \(own.action.rawValue) here"
        case .tunnel, .verifyTunnel, .intercept: break
        }
        if hasRules { return "that has rules, and entries are not merged; only action: deny would be stricter" }
        if defaultRules != nil, own.rules !== defaultRules {
            return "the bundle's defaults have rules, and the entry has its own"
        }
        if isOfEntry, own.hasBaseURL { return "base_url sends requests to another host" }
        if let clients, own.clients != clients { return "clients are others here" }
        if let reportURI, own.reportURI != reportURI { return "report_uri is another" }
        return policy.weakness(of: own.policy)
    }
}

extension SecurityPolicy {
    /// The first relaxation in another policy, as far as the keys of an entry say; nil: none.
    fileprivate func weakness(of own: SecurityPolicy) -> String? {
        if own.allowsInvalidCertificates, !allowsInvalidCertificates { return "allow_invalid_certificates" }
        if !own.validatesDomainName, validatesDomainName { return "validates_domain_name: false" }
        if mode != .none {
            if own.mode != mode { return "pinning is \(mode.rawValue) there" }
            if position != .any, own.position != position { return "position is \(position.rawValue) there" }
            let known = Set(pins.pins)
            if let other = own.pins.pins.first(where: { !known.contains($0) }) {
                return "the bundle doesn't have the pin \(other.origin)"
            }
            if let reason = rolloutWeakness(of: own) { return reason }
            if let expiry, own.expiry != expiry { return "expires and on_expiry are others here" }
            if enforcement == .enforce, own.expiry != expiry, own.expiry?.action == .report {
                return "on_expiry: report"
            }
        }
        return requirements.weakness(of: own.requirements)
    }

    /// Nil: it enforces wherever and whenever this one does.
    private func rolloutWeakness(of own: SecurityPolicy) -> String? {
        guard enforcement == .enforce || rollout != nil else { return nil }
        guard let softer = own.rollout else { return own.enforcement == .report ? "enforcement: report" : nil }
        guard let rollout else { return "\(softer.key), where the pins are enforced there" }
        return softer.isAsStrict(as: rollout)
            ? nil : "\(softer.key): \(softer.written), where \(rollout.key) is \(rollout.written) there"
    }
}

extension TrustRequirements {
    fileprivate func weakness(of own: TrustRequirements) -> String? {
        if own.minimumTLS == .tls12, minimumTLS == .tls13 { return "min_tls: 1.2" }
        if own.stapling.strictness < stapling.strictness { return "ocsp: \(own.stapling.rawValue)" }
        if let lists = revocationLists, own.revocationLists?.digest != lists.digest { return "crl_files are others" }
        if let logs = transparencyLogs, own.transparencyLogs?.digest != logs.digest { return "ct_log_list is another" }
        if let longest = maximumLeafLifetime, own.maximumLeafLifetime ?? .max > longest {
            return "max_leaf_lifetime is longer"
        }
        return nil
    }
}

extension OCSPStapling {
    fileprivate var strictness: Int {
        switch self {
        case .ignore: 0
        case .ifStapled: 1
        case .require: 2
        }
    }
}
