import FoundationEssentials
package import PinproxyConfiguration
package import PinproxyTLS

/// A start with the kept configuration, after the present one was refused.
package struct ConfigurationFallback: Sendable {
    let refusal: ConfigurationProblems
    let keptAt: UnixTime

    package init(refusal: ConfigurationProblems, keptAt: UnixTime) {
        self.refusal = refusal
        self.keptAt = keptAt
    }

    var text: String {
        let errors = refusal.problems.filter { $0.severity == .error }
        let first = errors.first.map { ": \($0)" } ?? ""
        let more = errors.count > 1 ? " (and \(errors.count - 1) more; pinproxy check shows them)" : ""
        return "the configuration was refused at the start, and the one of \(date) is in force\(first)\(more)"
    }

    var date: String { Date(timeIntervalSince1970: TimeInterval(keptAt)).formatted(.iso8601) }
}
