internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession
internal import PinproxyTLS

struct PinEntryReader {
    let section: Section
    let file: String

    private let defaults: PinDefaults

    init(_ section: Section, file: String, defaults: PinDefaults) {
        self.section = section
        self.file = file
        self.defaults = defaults
    }

    /// The pattern and its place; nil (with an error) without one.
    func match(of element: YAMLValue) -> (pattern: HostPattern, place: YAMLValue)? {
        guard let value = section.value("match") else {
            if case .mapping = element.content { section.error(element, "the entry has no \"match\"") }
            return nil
        }
        return section.scalar(value, "match", .hostPattern).map { ($0, value) }
    }

    /// - Parameter number: of the entry's pattern, as the parts' patterns know it.
    func entry(_ number: Int, at place: YAMLValue, parts: SharedParts) -> HostEntry {
        let action: HostAction = section.read("action", .anyCase) ?? .intercept
        defer { finish() }
        guard action == .intercept || action == .verifyTunnel else {
            refuseKeys(of: action)
            let clients = clients(action)
            return parts.entry(
                number, at: place, policy: SecurityPolicy(),
                EntryTerms(
                    action: action, rules: rules(action, isPinned: false, for: clients), clients: clients,
                    patterns: parts.patterns, file: file))
        }
        let policy = policy()
        let identity = clientIdentity(action)
        let tls = parts.tls.settings(policy.requirements, identity: identity) { problem in
            section.start.map { section.error($0, problem) }
        }
        let reportURI =
            section.value("report_uri") == nil
            ? defaults.reportURI : section.readOptional("report_uri", .collector)
        let showsRefusals = section.read("on_refusal", .word([("status", false), ("page", true)])) ?? false
        if showsRefusals, action != .intercept { refusePage() }
        let records = section.read("record", .bool) ?? false
        let clients = clients(action)
        return parts.entry(
            number, at: place, policy: policy,
            EntryTerms(
                action: action, tls: tls, reportURI: reportURI, showsRefusals: showsRefusals, records: records,
                rules: rules(action, isPinned: policy.mode != .none, for: clients), clients: clients,
                patterns: parts.patterns, file: file))
    }

    /// The rules of the host. Read after all other keys: entries without rules cost nothing and share the defaults'.
    private func rules(_ action: HostAction, isPinned: Bool, for clients: EntryClients?) -> RuleLayers? {
        guard section.hasUnreadKeys || clients != nil && defaults.rules?.stores == true else { return defaults.rules }
        guard action != .deny else {
            for key in RuleBlockReader.keys {
                section.nonNull(key).map { section.warning($0, "\(key) has no effect: the host is denied") }
            }
            return nil
        }
        let reader = RuleBlockReader(section: section, file: file, owner: .entry(isPinned: isPinned))
        let layers = reader.layers(over: defaults.rules?.defaults, for: clients)
        if action != .intercept, let layers { refuseRules(layers.entry, of: action) }
        return layers
    }

    /// Refuses rules with an action that forwards bytes unread: there are no requests for them.
    private func refuseRules(_ block: RuleBlock, of action: HostAction) {
        func refuse(_ name: String, _ place: Place) {
            section.error(
                place,
                "\(name) can't apply with action: \(action.rawValue), where the proxy sees no requests; write "
                    + "action: intercept, or remove it")
        }
        let own = block.own
        for (key, place) in own.session.places where key.isOfExchanges && !own.session.isDefault(key) {
            refuse("session.\(key.rawValue)", place)
        }
        for (key, place) in own.request.places where !own.request.isDefault(key) {
            refuse("request.\(key.rawValue)", place)
        }
        for (key, place) in own.response.places where !own.response.isDefault(key) {
            refuse("response.\(key.rawValue)", place)
        }
        for (key, place) in own.cache.places where !own.cache.isDefault(key) { refuse(key.rawValue, place) }
        if !block.rules.isEmpty, let value = section.value("rules") { refuse("rules", section.place(of: value)) }
    }

    /// The rest of the keys of the contract, and then those that are unknown.
    func finish() {
        guard section.hasUnreadKeys else { return }
        for key in ["match", "action"] + Self.checkingKeys + RuleBlockReader.keys + ["clients"] {
            _ = section.value(key)
        }
        section.finish()
    }

    /// The keys that say how a certificate is judged, or what follows from it.
    private static let checkingKeys =
        [
            "pinning", "pins", "enforcement", "position", "allow_invalid_certificates", "validates_domain_name",
            "expires", "on_expiry",
        ] + RolloutReader.keys + RequirementsReader.keys + ["report_uri", "record", "client_certificate", "on_refusal"]

    private func policy() -> SecurityPolicy {
        let written = section.value("pinning")
        let mode: PinningMode? = section.read("pinning", .anyCase)
        let pins = pins(mode)
        let allowsInvalidCertificates = section.read("allow_invalid_certificates", .bool) ?? false
        let enforcement: Enforcement = section.read("enforcement", .anyCase) ?? .enforce
        let policy = SecurityPolicy(
            mode: mode ?? .none,
            pins: PinSet(pins?.compactMap(\.pin) ?? []),
            allowsInvalidCertificates: allowsInvalidCertificates,
            validatesDomainName: section.read("validates_domain_name", .bool) ?? true,
            position: section.read("position", .anyCase) ?? .any,
            enforcement: enforcement,
            requirements: RequirementsReader(section: section, file: file, inherited: defaults.requirements).read(),
            expiry: expiry(pins: pins?.isEmpty == false),
            rollout: RolloutReader(section: section).read(
                enforcement, hasPins: pins?.isEmpty == false && (mode ?? .publicKey) != .none,
                allowsInvalidCertificates: allowsInvalidCertificates))
        let isComplete = (mode != nil || written == nil) && pins?.contains { $0.pin == nil } != true
        if isComplete { judge(policy, isModeWritten: written != nil) }
        warnOfDuplicates(pins ?? [])
        return policy
    }

    private func expiry(pins: Bool) -> PinExpiry? {
        let date = section.readOptional("expires", .date)
        let action: OnExpiry = section.read("on_expiry", .anyCase) ?? .enforce
        if let value = section.nonNull("on_expiry"), section.nonNull("expires") == nil, action != .enforce {
            section.error(
                value, "on_expiry: \(action.rawValue) without \"expires\": write the date, e.g. expires: 2027-06-30")
        }
        guard let date else { return nil }
        if let value = section.value("expires"), !pins, action != .deny {
            section.error(value, "expires: there are no pins that could expire (on_expiry: deny would deny the host)")
        }
        return PinExpiry(date: date, action: action)
    }

    /// Reports contradictions and warnings of the settings together.
    private func judge(_ policy: SecurityPolicy, isModeWritten: Bool) {
        guard let entry = section.start else { return }
        for contradiction in policy.contradictions {
            switch contradiction {
            case .unusedPins where !isModeWritten:
                section.error(
                    section.value("pins") ?? entry,
                    "there are pins, but no \"pinning\"; write pinning: public-key or certificate")
            case .unusedPins: section.error(section.value("pinning") ?? entry, "\(contradiction)")
            case .noPins: section.error(section.value("pins") ?? section.value("pinning") ?? entry, "\(contradiction)")
            case .nothingToCheckTheNameBy:
                section.error(section.value("allow_invalid_certificates") ?? entry, "\(contradiction)")
            case .positionNeverMatches: section.error(section.value("position") ?? entry, "\(contradiction)")
            case .reportWithoutTrust: section.error(section.value("enforcement") ?? entry, "\(contradiction)")
            case .reportOnExpiryWithoutTrust: section.error(section.value("on_expiry") ?? entry, "\(contradiction)")
            case .requirementsWithoutChain(let keys):
                section.error(keys.compactMap(section.value).first ?? entry, "\(contradiction)")
            }
        }
        for unsafeSwitch in policy.unsafeSwitches {
            let key: String =
                switch unsafeSwitch {
                case .acceptsAnyone, .allowsInvalidCertificates: "allow_invalid_certificates"
                case .ignoresName: "validates_domain_name"
                }
            section.warning(section.value(key) ?? entry, "insecure: \(unsafeSwitch)")
        }
        // Snapshot.warnings(at:) has the warnings that depend on time.
        if policy.mode != .none, policy.enforcement == .report, policy.rollout == nil {
            section.warning(
                section.value("enforcement") ?? entry,
                "\(Snapshot.reportWarning), so a pin that doesn't match is logged and not refused")
        }
    }

    private func refusePage() {
        section.nonNull("on_refusal").map {
            section.error(
                $0,
                """
                on_refusal: page needs action: intercept: a page can be shown only where the proxy speaks TLS with the \
                client
                """
            )
        }
    }

    /// Tunnelled and denied hosts have no policy, and must not look as if they had.
    private func refuseKeys(of action: HostAction) {
        for key in Self.checkingKeys {
            guard let value = section.nonNull(key) else { continue }
            if key == "on_refusal", action != .deny {
                if case .scalar("page") = value.content { refusePage() }
                continue
            }
            if key == "pinning", case .scalar("none") = value.content { continue }
            if action == .deny {
                section.warning(value, "\(key) has no effect: the host is denied")
            } else {
                section.error(
                    value,
                    "\(key) can't be enforced with action: tunnel, where the proxy looks at no certificate; write "
                        + "action: verify-tunnel to have it checked all the same, action: intercept, or remove it")
            }
        }
    }
}

extension Form where Value == UnixTime {
    static var date: Form {
        Form { text in
            DateText.parse(text).map { .success($0) }
                ?? .failure(
                    Reason("\"\(text)\" is not a date; write it as 2027-06-30 (from the beginning of that day, UTC)"))
        }
    }
}

extension PinEntryReader {
    /// A pin and where it is written; without the pin if it is wrong.
    struct WrittenPin {
        var pin: Pin?
        var place: YAMLValue
    }

    /// The pins of the entry; nil if the key isn't written. A wrong `mode` (nil) is taken for the public key.
    func pins(_ mode: PinningMode?) -> [WrittenPin]? {
        guard let value = section.nonNull("pins") else { return nil }
        guard case .sequence(let list) = value.content else {
            section.error(value, "\"pins\" takes a list (\"- sha256/…\"), not \(value.kind)")
            return [WrittenPin(pin: nil, place: value)]
        }
        let mode = mode == .certificate ? PinningMode.certificate : .publicKey
        return list.map { WrittenPin(pin: pin($0, mode), place: $0) }
    }

    private func pin(_ value: YAMLValue, _ mode: PinningMode) -> Pin? {
        switch value.content {
        case .scalar:
            return section.scalar(
                value, "pins",
                Form { text in
                    Result { () throws(PinError) in try Pin(text: text, for: mode) }.mapError { Reason("\($0)") }
                })
        case .mapping:
            let fields = section.element("pins", value)
            defer { fields.finish() }
            guard let written = fields.value("file") else {
                section.error(value, "a pin is sha256/… or file: NAME")
                return nil
            }
            guard let name = fields.scalar(written, "file", .path) else { return nil }
            return report(written) { () throws(PinError) in
                let path = section.path(name, at: written, "file", .policy, relativeTo: file)
                return try Pin(file: section.findings.sources.source(path), for: mode, origin: name)
            }
        case .null, .sequence, .set:
            section.error(value, "a pin is sha256/… or file: NAME, not \(value.kind)")
            return nil
        }
    }

    private func report(_ value: YAMLValue, _ read: () throws(PinError) -> Pin) -> Pin? {
        do {
            return try read()
        } catch {
            section.error(value, "pins: \(error)")
            return nil
        }
    }

    /// Two spellings of one pin make no backup.
    func warnOfDuplicates(_ pins: [WrittenPin]) {
        guard pins.count > 1 else { return }
        var seen: Set<Pin> = []
        for written in pins {
            guard let pin = written.pin, !seen.insert(pin).inserted else { continue }
            section.warning(written.place, "pins: this is the same pin as one above it")
        }
    }
}
