internal import Security

/// Reads one entry of the pin file.
struct PinEntryReader {
    let section: Section
    let file: String

    init(_ section: Section, file: String) {
        self.section = section
        self.file = file
    }

    /// The pattern and where it is written; nil (with an error) if there is none.
    func match(of element: YAMLValue) -> (pattern: HostPattern, place: YAMLValue)? {
        guard let value = section.value("match") else {
            if case .mapping = element.content { section.error(element, "the entry has no \"match\"") }
            return nil
        }
        let form = Form<HostPattern> { text in
            Result { () throws(HostPatternError) in try HostPattern(text) }.mapError { Reason("\($0)") }
        }
        return section.scalar(value, "match", form).map { ($0, value) }
    }

    func entry(for pattern: HostPattern, line: Int) -> HostEntry {
        let action = section.read("action", .action) ?? .intercept
        let policy = action == .intercept ? policy() : withoutPolicy(action)
        finish()
        return HostEntry(action: action, policy: policy, pattern: pattern.description, file: file, line: line)
    }

    /// The rest of the keys of the contract, and then those that are none.
    func finish() {
        for key in ["match", "action"] + Self.policyKeys { _ = section.value(key) }
        section.notBuilt("expires", "the expiry of pins is")
        section.notBuilt("on_expiry", "the expiry of pins is") { value in
            if case .scalar("enforce") = value.content { true } else { false }
        }
        section.notBuilt("client_certificate", "the client certificate is")
        section.notBuilt("request", "request serializer rules are")
        section.notBuilt("response", "response serializer rules are")
        section.finish()
    }

    private static let policyKeys = [
        "pinning", "pins", "enforcement", "position", "allow_invalid_certificates", "validates_domain_name",
    ]

    private func policy() -> SecurityPolicy {
        let written = section.value("pinning")
        let mode = section.read("pinning", .word(PinningMode.allCases.map { ($0.rawValue, $0) }))
        let pins = pins(mode)
        let policy = SecurityPolicy(
            mode: mode ?? .none,
            pins: PinSet(pins?.compactMap(\.pin) ?? []),
            allowsInvalidCertificates: section.read("allow_invalid_certificates", .bool) ?? false,
            validatesDomainName: section.read("validates_domain_name", .bool) ?? true,
            position: section.read("position", .word(PinPosition.allCases.map { ($0.rawValue, $0) })) ?? .any,
            enforcement: section.read("enforcement", .word(Enforcement.allCases.map { ($0.rawValue, $0) })) ?? .enforce)
        let isComplete = (mode != nil || written == nil) && pins?.contains { $0.pin == nil } != true
        if isComplete { judge(policy, isModeWritten: written != nil) }
        warnOfDuplicates(pins ?? [])
        return policy
    }

    /// What the settings mean together.
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
        if policy.mode != .none, policy.enforcement == .report {
            section.warning(
                section.value("enforcement") ?? entry,
                "insecure: enforcement is report, so a pin that doesn't match is logged and not refused")
        }
    }

    /// Tunnelled and denied hosts have no policy, and must not look as if they had.
    private func withoutPolicy(_ action: HostAction) -> SecurityPolicy {
        for key in Self.policyKeys {
            guard let value = section.value(key) else { continue }
            if key == "pinning", case .scalar("none") = value.content { continue }
            switch action {
            case .tunnel:
                section.error(
                    value,
                    "\(key) can't be enforced with action: tunnel, where the proxy sees no certificate; "
                        + "remove it, or write action: intercept")
            default: section.warning(value, "\(key) has no effect: the host is denied")
            }
        }
        return SecurityPolicy()
    }
}
