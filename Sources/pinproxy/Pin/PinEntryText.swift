internal import Configuration
internal import Security

/// An entry for pins.yaml that a person is to look at and paste below `hosts:`.
struct PinEntryText {
    struct Line: Encodable {
        /// `sha256/…`
        let pin: String
        /// What it is the pin of.
        let remark: String
    }

    /// Nil where nobody said which host it is for: then only the lines of the pins are given.
    var pattern: String?
    /// What was seen where, and what to think of it; each a line of a comment.
    var remarks: [String]
    var pins: [Line]
    /// These are left out where they are the default.
    var action = HostAction.intercept
    var enforcement = Enforcement.enforce
    /// The entry that decides now for the host, whose other keys are wanted too.
    var wildcard: HostEntry?
    /// The other keys, a line each; indented as keys are.
    var more: [String] = []

    /// Indented as the entries of `hosts:` are in the file that comes with the proxy.
    var yaml: String {
        var lines = remarks.map { $0.isEmpty ? "  #" : "  # \($0)" }
        if let pattern {
            lines.append("  - match: \(Self.quoted(pattern))")
            if action != .intercept { lines.append("    action: \(action.rawValue)") }
            lines.append("    pinning: public-key")
            if enforcement != .enforce { lines.append("    enforcement: \(enforcement.rawValue)") }
            lines.append("    pins:")
        }
        lines += pins.map { "      - \($0.pin)   # \($0.remark)" }
        lines += more.map { "    " + $0 }
        return lines.joined(separator: "\n") + "\n"
    }

    /// A wildcard would be an alias in YAML, a bracket a list, and a name of one label may be a word such
    /// as null.
    private static func quoted(_ pattern: String) -> String {
        let isPlain = pattern.first?.isLetter == true && pattern.contains(".")
        return isPlain ? pattern : "\"\(pattern)\""
    }
}
