internal import PinproxySecurity
internal import PinproxyTLS

/// Reads when or where an entry's pins come to be enforced: `enforce_from`, `enforce_after`, `stage`.
struct RolloutReader {
    let section: Section

    static let keys = ["enforce_from", "enforce_after", "stage"]

    /// What is wrong is an error, and then the written enforcement holds.
    func read(_ enforcement: Enforcement, hasPins: Bool, allowsInvalidCertificates: Bool) -> PinRollout? {
        let date = section.readOptional("enforce_from", .date).map(PinRollout.from)
        let condition = section.nonNull("enforce_after").flatMap(condition).map {
            PinRollout.after($0, enforcedSince: nil)
        }
        let stage = section.readOptional("stage", .share).map { percent in
            PinRollout.stage(percent: percent, place: section.findings.stage.place)
        }
        let written = Self.keys.compactMap { key in section.nonNull(key).map { (key: key, value: $0) } }
        for (key, value) in written {
            let objection = objection(
                to: key, enforcement, hasPins: hasPins, allowsInvalidCertificates: allowsInvalidCertificates)
            if let objection { section.error(value, "\(key): \(objection)") }
        }
        if let from = section.nonNull("enforce_from"), let after = section.nonNull("enforce_after") {
            let line = section.place(of: from).line.map { " (line \($0))" } ?? ""
            section.error(after, "enforce_after: there is enforce_from too\(line); write one of them")
        }
        return date ?? condition ?? stage
    }

    private func objection(
        to key: String, _ enforcement: Enforcement, hasPins: Bool, allowsInvalidCertificates: Bool
    ) -> String? {
        guard hasPins else { return "there are no pins to enforce; add pinning and pins, or remove it" }
        if allowsInvalidCertificates {
            return
                "with allow_invalid_certificates the pins alone authenticate the server, so they are always "
                + "enforced; remove it"
        }
        switch (key, enforcement) {
        case ("stage", .report):
            return
                "enforcement is report, on all machines; write enforcement: enforce, which holds for the machines of "
                + "the stage, or remove it"
        case ("stage", .enforce), (_, .report): return nil
        case (_, .enforce):
            return
                "enforcement is enforce, from now on; write enforcement: report, which holds until then, or remove it"
        }
    }

    private func condition(_ value: YAMLValue) -> EnforcementCondition? {
        let fields = section.element("enforce_after", value)
        defer { fields.finish() }
        let matches = fields.read("matches", .integer(1...1_000_000))
        let days = fields.read("days", .integer(0...3650))
        guard case .mapping = value.content else { return nil }
        if !fields.has("matches"), !fields.has("days") {
            section.error(value, "enforce_after: write matches, days or both, e.g. {matches: 100, days: 14}")
            return nil
        }
        // An entry without a connection has proved nothing.
        return EnforcementCondition(matches: matches ?? 1, days: days ?? 0)
    }
}

extension Form where Value == Int {
    /// `10%` of the machines, or `10`.
    fileprivate static var share: Form {
        Form { text in
            let number = text.hasSuffix("%") ? String(text.dropLast()) : text
            guard let percent = Int(number), number.allSatisfy(\.isNumber) else {
                return .failure(Reason("\"\(text)\" is not a share of machines; write it as 10%"))
            }
            guard (1...100).contains(percent) else {
                return .failure(Reason("\(text) is out of range; write a share from 1% to 100%"))
            }
            return .success(percent)
        }
    }
}
