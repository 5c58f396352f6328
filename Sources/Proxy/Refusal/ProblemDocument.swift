/// A report as a problem document (RFC 9457), one member a line, so that it can be read as it is.
enum ProblemDocument {
    static func json(of report: RefusalReport) -> String {
        var members = [
            ("type", string("urn:pinproxy:problem:\(report.error.rawValue)")),
            ("title", string(report.title)),
            ("status", "\(report.status)"),
            ("detail", string(report.details)),
        ]
        if let host = report.host { members.append(("host", string(host))) }
        members.append(("error", string(report.error.rawValue)))
        // The pins stand in these lines as they are pasted into pins.yaml.
        let lines = report.text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { "    " + string(String($0)) }
        members.append(("text", "[\n" + lines.joined(separator: ",\n") + "\n  ]"))
        return "{\n" + members.map { "  \"\($0.0)\": \($0.1)" }.joined(separator: ",\n") + "\n}\n"
    }

    /// A JSON string (RFC 8259 section 7).
    static func string(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}":
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }
}
