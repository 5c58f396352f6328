internal import Configuration
internal import Security

/// Finds entries that take hosts away from a wildcard's pins, or from its clients, and protect them less. Entries are not
/// merged: the more specific one decides alone, and whoever reads the wildcard may think otherwise.
struct LintShadows {
    private let entries: [HostTable<HostEntry>.Entry]
    /// What the wildcards have that the others may lack.
    private let protection: String
    private let weakness: (HostEntry) -> String?
    /// The wildcards that have it, by the name that they stand over.
    private var wildcards: [String: [HostTable<HostEntry>.Entry]] = [:]

    static func findings(in entries: [HostTable<HostEntry>.Entry]) -> [LintFinding] {
        LintShadows(entries, "pins", of: \.enforcesPins, lackedBy: \.weakness).findings()
            + LintShadows(entries, "clients", of: { $0.clients != nil }, lackedBy: { $0.isForEverybody ? "it is for every client" : nil })
            .findings()
    }

    private init(
        _ entries: [HostTable<HostEntry>.Entry], _ protection: String, of isProtected: (HostEntry) -> Bool,
        lackedBy weakness: @escaping (HostEntry) -> String?
    ) {
        self.entries = entries
        self.protection = protection
        self.weakness = weakness
        for entry in entries where entry.pattern.scope != .exact && isProtected(entry.value) {
            wildcards[entry.pattern.name, default: []].append(entry)
        }
    }

    private func findings() -> [LintFinding] {
        guard !wildcards.isEmpty else { return [] }
        return entries.compactMap { entry in
            guard let weakness = weakness(entry.value), let wildcard = wildcard(above: entry.pattern) else { return nil }
            return LintFinding(
                .shadowed, of: entry.value,
                "the \(protection) of \(wildcard.value.pattern) (line \(wildcard.value.line)) do not apply here: this entry is "
                    + "more specific, and \(weakness)",
                fix: "give this entry its own \(protection), or remove it so that the wildcard decides")
        }
    }

    /// The most specific wildcard with pins under which all hosts of the pattern would fall.
    private func wildcard(above pattern: HostPattern) -> HostTable<HostEntry>.Entry? {
        var best: HostTable<HostEntry>.Entry?
        var name = pattern.name[...]
        while true {
            for entry in wildcards[String(name)] ?? [] where entry.pattern.isAbove(pattern) {
                if best.map({ entry.pattern.isMoreSpecific(than: $0.pattern) }) ?? true { best = entry }
            }
            guard let dot = name.firstIndex(of: ".") else { return best }
            name = name[name.index(after: dot)...]
        }
    }
}

extension HostPattern {
    /// Every host that the other one matches is matched by this one too, which is less specific.
    func isAbove(_ other: HostPattern) -> Bool {
        guard other.isMoreSpecific(than: self), !other.isAddress, port == nil || port == other.port else {
            return false
        }
        switch (scope, other.scope) {
        case (.subtree, _): return other.name == name || other.name.hasSuffix("." + name)
        case (.oneLabel, .exact): return matches(host: other.name, port: other.port ?? 443)
        case (.oneLabel, .oneLabel): return other.name == name
        default: return false
        }
    }
}

extension HostEntry {
    fileprivate var isForEverybody: Bool { clients == nil && action != .deny }

    fileprivate var enforcesPins: Bool {
        policy.mode != .none && policy.enforcement == .enforce
    }

    /// What makes it protect less than enforced pins; nil if it doesn't.
    fileprivate var weakness: String? {
        switch action {
        case .deny: nil
        case .tunnel: "its action is tunnel, which checks no certificate"
        case .intercept, .verifyTunnel:
            policy.mode == .none
                ? "it has no pins" : policy.enforcement == .report ? "its enforcement is report" : nil
        }
    }
}
