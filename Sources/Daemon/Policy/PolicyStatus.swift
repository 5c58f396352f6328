import Configuration
import Records
package import TLS

/// The signed policy of a machine, for `status` and the page.
package struct PolicyStatus: Codable, Sendable, Equatable {
    /// Without its query.
    package let url: String
    /// Of the bundle in force; nil: none.
    package let version: Int?
    package let digest: String?
    package let note: String?
    /// When its dates end.
    package let expires: UnixTime?
    /// Why every host is denied.
    package let denial: String?
    /// The last answer of the server that could be used.
    package let answered: UnixTime?
    /// Failed tries since the start.
    package let failures: Int
    /// Why the last try failed; nil: it didn't.
    package let failure: String?
    /// The version of a bundle that isn't for this machine yet (`stage`).
    package let waiting: Int?

    /// Nil: the machine has only its own pin file.
    init?(_ snapshot: Snapshot, _ figures: PolicyWatch.Figures?) {
        guard let policy = snapshot.policy else { return nil }
        let bundle = snapshot.bundle
        url = "\(policy.bundle)"
        version = bundle?.version
        digest = bundle?.digest
        note = bundle?.note
        expires = bundle?.expires
        denial = snapshot.denial
        answered = figures?.answered
        failures = figures?.failures ?? 0
        failure = figures?.failure
        waiting = figures?.waiting
    }
}

extension PolicyStatus {
    func write(to text: inout MetricsText) {
        if let version {
            text.family("pinproxy_policy_bundle_version", .gauge, "The version of the policy bundle in force.", version)
        }
        if let expires {
            text.family("pinproxy_policy_expiry_timestamp_seconds", .gauge, "When the bundle's dates end.")
            text.sample([], expires)
        }
        text.family("pinproxy_policy_denies", .gauge, "1 if every host is denied, since no bundle holds.")
        text.sample([], denial == nil ? 0 : 1)
        if let answered {
            text.family(
                "pinproxy_policy_answer_timestamp_seconds", .gauge, "When the server of the bundle last answered.")
            text.sample([], answered)
        }
        text.family(
            "pinproxy_policy_failures", .counter, "Tries to fetch the bundle, or to put it into force, that failed.")
        text.sample([], failures)
    }
}
