import PinproxyConfiguration
package import PinproxyTLS

/// The signed policy of a machine, for `status` and the page.
package struct PolicyStatus: Codable, Sendable, Equatable {
    /// The bundle's URL, without its query.
    package let url: String
    /// The version of the bundle in force; nil: none.
    package let version: Int?
    package let digest: String?
    package let note: String?
    /// When the bundle expires.
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
        expires = figures?.expires ?? bundle?.expires
        denial = snapshot.denial
        answered = figures?.answered
        failures = figures?.failures ?? 0
        failure = figures?.failure
        waiting = figures?.waiting
    }
}
