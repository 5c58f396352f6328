import Configuration
import Logging
import Records

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
            try kept.keep(snapshot, of: Self.version, at: readAt)
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
