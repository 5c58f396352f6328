import PinproxyRecords

/// The families are there without a bundle too; the samples aren't.
struct PolicyMetrics {
    let status: PolicyStatus?

    func write(to text: inout some MetricsWriter) {
        text.family("pinproxy_policy_bundle_version", .gauge, "The version of the policy bundle in force.")
        if let version = status?.version { text.sample([], version) }
        text.family("pinproxy_policy_expiry_timestamp_seconds", .gauge, "When the bundle's dates end.")
        if let expires = status?.expires { text.sample([], expires) }
        text.family("pinproxy_policy_denies", .gauge, "1 if every host is denied, since no valid bundle is in force.")
        if let status { text.sample([], status.denial == nil ? 0 : 1) }
        text.family(
            "pinproxy_policy_answer_timestamp_seconds", .gauge, "When the server of the bundle last answered.")
        if let answered = status?.answered { text.sample([], answered) }
        text.family(
            "pinproxy_policy_failures", .counter, "Tries to fetch the bundle, or to put it into force, that failed.")
        if let status { text.sample([], status.failures) }
    }
}
