import PinproxyRecords

/// The configuration in force, for `/metrics` and for a collector.
struct ConfigurationMetrics {
    let daemon: MetricsReport.Daemon

    func write(to metrics: inout some MetricsWriter) {
        metrics.family("pinproxy_config_reloads", .counter, "Reloads of the configuration.")
        metrics.sample([("result", "accepted")], daemon.reloadsAccepted)
        metrics.sample([("result", "refused")], daemon.reloadsRefused)
        metrics.family(
            "pinproxy_config_last_reload_successful", .gauge,
            "0 if the last reload was refused, and the one before is in force.", daemon.lastReloadFailed ? 0 : 1)
        metrics.family(
            "pinproxy_config_fallback", .gauge,
            "1 if the configuration was refused at the start, and the one last in force is used.",
            daemon.isFallback ? 1 : 0)
        metrics.family(
            "pinproxy_config_info", .gauge,
            "The policy in force, as labels: its digest (pinproxy.yaml and all pin files), and the bundle's version.")
        metrics.sample(
            [("digest", daemon.digest), ("bundle", daemon.policy?.version.map { "\($0)" } ?? "")], 1)
        PolicyMetrics(status: daemon.policy).write(to: &metrics)
        metrics.family(
            "pinproxy_config_generation", .gauge, "Configurations that have been in force since the start.",
            daemon.generation)
        metrics.family(
            "pinproxy_config_read_timestamp_seconds", .gauge, "When the configuration in force was read.",
            daemon.readAt)
        metrics.family("pinproxy_config_entries", .gauge, "Entries of the pin file.", daemon.entryCount)
        metrics.family(
            "pinproxy_config_report_only_entries", .gauge, "Entries with pins that only report (enforcement: report).",
            daemon.reportOnlyCount)
        metrics.family(
            "pinproxy_config_warnings", .gauge, "Warnings of the configuration in force (pinproxy check).",
            daemon.warnings)
        metrics.family(
            "pinproxy_config_insecure_switches", .gauge, "Settings in force that take protection away.",
            daemon.insecureSwitches)
    }
}
