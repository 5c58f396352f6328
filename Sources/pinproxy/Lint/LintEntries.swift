internal import PinproxyConfiguration
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// Findings from reading a configuration, on a given day.
struct LintEntries {
    let snapshot: Snapshot
    let now: UnixTime

    func findings() -> [LintFinding] {
        let entries = snapshot.hosts.entries
        let suffixes = entries.compactMap(publicSuffix)
        let known = Set(suffixes.map(\.message))
        return warnings(without: known) + suffixes + entries.compactMap { noBackup($0.value) }
            + entries.compactMap { refusalPage($0.value) } + entries.compactMap { weakClients($0.value) }
            + entries.flatMap { LintCache.findings($0.value, at: now) }
            + LintShadows.findings(in: entries, at: now) + expiring() + lists() + authority()
    }

    // MARK: What check says too

    private func warnings(without known: Set<String>) -> [LintFinding] {
        // Entries that only report are a note of LintHistory.
        snapshot.warnings(at: now).filter {
            !known.contains($0.message) && !$0.message.hasPrefix(Snapshot.reportWarning)
                && !$0.message.hasPrefix(Snapshot.rolloutWarning)
        }.map { warning in
            let insecure = SecurityPolicy.UnsafeSwitch.allCases.first { warning.message == "insecure: \($0)" }
            if let insecure { return LintFinding(.insecure, at: warning.place, warning.message, fix: insecure.fix) }
            if let credentials = UnsafeCredentials.allCases.first(where: { warning.message == "\($0)" }) {
                return LintFinding(.insecure, at: warning.place, warning.message, fix: credentials.fix)
            }
            return LintFinding(
                .configuration, at: warning.place, warning.message,
                fix: "change the line, or leave it if this is intended")
        }
    }

    private func publicSuffix(_ entry: HostTable<HostEntry>.Entry) -> LintFinding? {
        guard entry.value.action != .deny, let warning = entry.pattern.publicSuffixWarning() else { return nil }
        return LintFinding(
            .publicSuffix, at: entry.value.place, entry: entry.value.pattern, "match: \(warning)",
            fix: "write an entry for each intended domain")
    }

    private func refusalPage(_ entry: HostEntry) -> LintFinding? {
        guard entry.showsRefusals else { return nil }
        return LintFinding(
            .refusalPage, .note, of: entry,
            """
            on_refusal is page: programs other than browsers get an HTTP error (502) within TLS, where they would see \
            a failed connection
            """,
            fix: "leave it if people reach the host with browsers; else remove it")
    }

    // MARK: Clients

    private func weakClients(_ entry: HostEntry) -> LintFinding? {
        guard let clients = entry.clients, clients.executables != nil, clients.users == nil, clients.units == nil else {
            return nil
        }
        return LintFinding(
            .weakClients, .note, of: entry,
            "clients lists only executables: anyone who may run \(clients.executables?.first ?? "one") may use the "
                + "entry, also with other code by a debugger or LD_PRELOAD",
            fix: "add users or units to executables, unless this is intended")
    }

    // MARK: Pins

    private func noBackup(_ entry: HostEntry) -> LintFinding? {
        guard entry.policy.mode != .none, entry.policy.pins.pins.count == 1 else { return nil }
        let renewal =
            entry.policy.position == .leaf || entry.policy.mode == .certificate
            ? "on the day that the server gets a new \(entry.policy.mode == .certificate ? "certificate" : "key")"
            : "on the day that its key is replaced"
        return LintFinding(
            .noBackup, of: entry, "there is one pin and no backup: the host is cut off \(renewal)",
            fix: "add the pin of a spare key (pinproxy pin --from backup.key), or of the authority that issues its "
                + "certificates (pinproxy pin HOST shows it)")
    }

    private func expiring() -> [LintFinding] {
        var entries: [String: HostEntry] = [:]
        for entry in snapshot.hosts.values { entries[entry.pattern] = entry }
        return ExpiryWatch.findings(in: snapshot, at: now).compactMap { end in
            let message = end.message(at: now)
            if end.subject == .revocationList {
                return LintFinding(
                    .crlExpires, at: end.place, entry: end.entry, (end.entry.map { "\($0): " } ?? "") + message,
                    fix: "fetch the issuer's current CRL into \(end.name ?? "the file"); it is reloaded automatically")
            }
            if end.subject.isOwn {
                return LintFinding(
                    .certificateExpires, at: end.place, message,
                    fix: "put a new one in its place, then: pinproxy reload")
            }
            if end.subject.isOfPolicy {
                return LintFinding(
                    .bundleExpires, at: end.place, message, fix: "sign it where bundles are made (docs/bundles.md)")
            }
            guard let entry = end.entry.flatMap({ entries[$0] }) else { return nil }
            switch end.subject {
            case .entry:
                return LintFinding(
                    .entryExpires, of: entry, "\(message); \(effect(of: entry.policy.expiry))",
                    fix: "check that the pins are still right (pinproxy pin HOST), and set a later expires")
            case .pin:
                return LintFinding(
                    .certificateExpires, of: entry, message,
                    fix: entry.policy.mode == .certificate
                        ? "add the certificate that replaces it alongside, and rehearse the change "
                            + "(pinproxy explain HOST --chain FILE --at DATE)"
                        : "add the key of the certificate that replaces it, unless that keeps the key")
            case .clientCertificate:
                return LintFinding(
                    .certificateExpires, of: entry, message, fix: "put a new one in its place, then: pinproxy reload")
            case .revocationList, .bundle, .bundleRoot, .authority, .nextAuthority, .adminCertificate,
                .proxyCertificate:
                return nil
            }
        }
    }

    private func authority() -> [LintFinding] {
        AuthorityRemarks.problems(in: snapshot, at: now).map {
            LintFinding(
                .authority, at: $0.place, $0.message,
                fix: "have a new authority made (pinproxy ca rotate), or have one issued without this limit")
        }
    }

    private func lists() -> [LintFinding] {
        RevocationListReview.findings(in: snapshot).map { found in
            LintFinding(
                .noRevocationList, at: found.place, entry: found.entry, found.message,
                fix: "fetch the list of this issuer, by the address in its certificates (CRL Distribution Points)")
        }
    }

    private func effect(of expiry: PinExpiry?) -> String {
        let isPast = expiry?.hasPassed(at: now) == true
        return switch expiry?.action {
        case .enforce?, nil: isPast ? "they are still enforced" : "they will still be enforced"
        case .report?: isPast ? "a mismatch is only reported now" : "a mismatch will then only be reported"
        case .deny?: isPast ? "the host is refused" : "the host will then be refused"
        }
    }
}

extension SecurityPolicy.UnsafeSwitch {
    static var allCases: [Self] { [.acceptsAnyone, .allowsInvalidCertificates, .ignoresName] }

    fileprivate var fix: String {
        switch self {
        case .acceptsAnyone: "remove both switches, or add pins and keep allow_invalid_certificates alone"
        case .allowsInvalidCertificates:
            "add the server's authority to upstream.trust in pinproxy.yaml, and remove the switch"
        case .ignoresName: "have the name added to the server's certificate, and remove the switch"
        }
    }
}

/// Finds entries that override a wildcard's pins or clients for some hosts, and protect them less. Entries are not
/// merged: the more specific one decides alone, which a reader of the wildcard may not expect.
struct LintShadows {
    private let entries: [HostTable<HostEntry>.Entry]
    /// The protection that the wildcards have and the others may lack.
    private let protection: String
    private let weakness: (HostEntry) -> String?
    /// The wildcards with that protection, by domain.
    private var wildcards: [String: [HostTable<HostEntry>.Entry]] = [:]

    static func findings(in entries: [HostTable<HostEntry>.Entry], at now: UnixTime) -> [LintFinding] {
        LintShadows(
            entries, "pins", of: { $0.enforcesPins(at: now) }, lackedBy: { $0.weakness(at: now) }
        )
        .findings()
            + LintShadows(
                entries, "clients", of: { $0.clients != nil },
                lackedBy: { $0.isForEverybody ? "it is for every client" : nil }
            )
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
            guard let weakness = weakness(entry.value), let wildcard = wildcard(above: entry.pattern) else {
                return nil
            }
            return LintFinding(
                .shadowed, of: entry.value,
                "the \(protection) of \(wildcard.value.pattern) (line \(wildcard.value.line)) do not apply here: this "
                    + "entry is more specific, and \(weakness)",
                fix: "give this entry its own \(protection), or remove it so that the wildcard decides")
        }
    }

    /// The most specific wildcard with pins that covers all hosts of the pattern.
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
    /// Whether this less specific pattern matches every host that the other matches.
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

    fileprivate func enforcesPins(at now: UnixTime) -> Bool { policy.mode != .none && !policy.onlyReports(at: now) }

    /// Why it protects less than enforced pins; nil if it doesn't.
    fileprivate func weakness(at now: UnixTime) -> String? {
        switch action {
        case .deny: nil
        case .tunnel: "its action is tunnel, which checks no certificate"
        case .intercept, .verifyTunnel:
            policy.mode == .none
                ? "it has no pins" : policy.onlyReports(at: now) ? "its enforcement is report" : nil
        }
    }
}
