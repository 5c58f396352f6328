package import Configuration
import FoundationEssentials
import Logging
package import TLS

/// A start with the kept configuration, because the present one was refused.
package struct ConfigurationFallback: Sendable {
    /// What is wrong with the present one.
    let refusal: ConfigurationProblems
    /// When the other came into force.
    let keptAt: UnixTime

    package init(refusal: ConfigurationProblems, keptAt: UnixTime) {
        self.refusal = refusal
        self.keptAt = keptAt
    }

    /// One line for people.
    var text: String {
        let errors = refusal.problems.filter { $0.severity == .error }
        let first = errors.first.map { ": \($0)" } ?? ""
        let more = errors.count > 1 ? " (and \(errors.count - 1) more; pinproxy check shows them)" : ""
        return "the configuration was refused at the start, and the one of \(date) is in force\(first)\(more)"
    }

    var date: String { Date(timeIntervalSince1970: TimeInterval(keptAt)).formatted(.iso8601) }
}

extension ProxyDaemon {
    /// Says at the start that it is in force, as loudly as a log can.
    func tellFallback() {
        guard let fallback else { return }
        for problem in fallback.refusal.problems { logger.error("config.error", metadata: ["cause": "\(problem)"]) }
        logger.error(
            "config.fallback",
            metadata: [
                "cause": "the configuration is refused",
                "effect": """
                    the one that was last in force, of \(fallback.date), is used until the files are corrected and reloaded
                    """,
            ])
    }

    /// Keeps what is in force for the next start. A fallback is kept already.
    func keepConfiguration() {
        guard let kept, fallback == nil else { return }
        do throws(KeptConfigurationProblem) {
            try kept.keep(snapshot, at: readAt)
        } catch {
            logger.warning(
                "state.unwritable",
                metadata: [
                    "file": "\(kept.path)", "cause": "\(error)",
                    "effect": "a start with a configuration that is refused will fail",
                ])
        }
    }

    /// The files were corrected.
    func endFallback() {
        guard fallback != nil else { return }
        fallback = nil
        logger.notice("config.fallback", metadata: ["effect": "over"])
    }
}
