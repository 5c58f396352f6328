import Foundation

@testable import PinproxyConfiguration

/// A pin file with rules, and the secrets and files that they name. It is read as by a version that supports every key,
/// or as by this one.
final class RuleBed {
    private let bed: ConfigurationBed

    init(_ pins: String) throws {
        bed = try ConfigurationBed(
            pins: pins,
            [
                "pins/secret": "hunter2\n", "pins/open": "hunter2\n", "pins/empty": "", "pins/lines": "a\u{1}b\n",
                "pins/report.csv": "a,b\n",
            ])
        for name in ["secret", "empty", "lines"] { chmod(bed.path("pins/" + name), 0o600) }
        chmod(bed.path("pins/open"), 0o644)
    }

    func load() throws(ConfigurationProblems) -> Snapshot {
        try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"), findings: Findings())
    }

    /// One problem a line, `LINE:COLUMN: …` of the pin file.
    func problems() -> [String] {
        let problems: [Problem]
        do { problems = try load().warnings } catch { problems = error.problems }
        return problems.map {
            $0.description.replacingOccurrences(of: bed.path("pins/hosts.yaml") + ":", with: "")
                .replacingOccurrences(of: bed.directory + "/", with: "")
        }
    }
}
