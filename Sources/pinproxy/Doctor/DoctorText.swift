internal import Security

/// The table that `pinproxy doctor` prints for people.
enum DoctorText {
    private static let widths = (client: 22, version: 12, yesOrNo: 7, shows: 9)

    static let heading = line("CLIENT", "VERSION", "PROXY", "TRUST", "REFUSAL", "")

    static func row(_ report: ClientReport) -> String {
        line(
            report.client, report.version, word(report.takesProxy), word(report.trustsAuthority),
            report.works ? report.shows.rawValue : "-", report.works ? "works" : "does not work")
    }

    /// What to set, and how many work.
    static func rest(_ reports: [ClientReport]) -> String {
        var lines: [String] = []
        for report in reports where !report.works {
            lines += ["", "\(report.client): \(report.said)"]
            if let set = report.set {
                let tried = report.worksThen.map { $0 ? " (tried: it works)" : " (tried here: that is not enough)" } ?? ""
                lines.append("  set: \(set.replacing("`", with: ""))\(tried)")
            }
        }
        lines += ["", "\(reports.count(where: \.works)) of \(Count(reports.count, "program")) work"]
        return lines.joined(separator: "\n")
    }

    private static func word(_ answer: Bool?) -> String { answer.map { $0 ? "yes" : "no" } ?? "-" }

    private static func line(_ columns: String...) -> String {
        let widths = [widths.client, widths.version, widths.yesOrNo, widths.yesOrNo, widths.shows]
        return zip(columns, widths).map { $0.0.padded(to: $0.1 - 1) + " " }.joined() + (columns.last ?? "")
    }
}
