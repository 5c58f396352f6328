import Security
package import TLS

/// Revocation lists change far more often than the rest of the configuration, and by other hands: they are read
/// again by themselves, without what somebody may be editing in the pin file.
extension Snapshot {
    /// The sets of lists in force: the defaults' and those of entries, each once, with the entry that names it first
    /// (nil: the defaults).
    package var revocationLists: [(lists: RevocationLists, entry: HostEntry?)] {
        var found: [(lists: RevocationLists, entry: HostEntry?)] = []
        var known: Set<ObjectIdentifier> = []
        func look(_ lists: RevocationLists?, _ entry: HostEntry?) {
            guard let lists, known.insert(ObjectIdentifier(lists)).inserted else { return }
            found.append((lists, entry))
        }
        look(defaultPolicy.requirements.revocationLists, nil)
        for entry in hosts.values { look(entry.policy.requirements.revocationLists, entry) }
        return found
    }

    /// The same configuration with the lists as their files have them now; nil if they say what they said.
    package func withFreshRevocationLists() throws(RevocationListError) -> Snapshot? {
        var fresh: [ObjectIdentifier: RevocationLists] = [:]
        for (lists, _) in revocationLists {
            let read = try RevocationLists.load(lists.paths)
            if read.digest != lists.digest { fresh[ObjectIdentifier(lists)] = read }
        }
        guard !fresh.isEmpty else { return nil }
        func replaced(_ policy: SecurityPolicy) -> SecurityPolicy? {
            guard let lists = policy.requirements.revocationLists, let new = fresh[ObjectIdentifier(lists)] else {
                return nil
            }
            var requirements = policy.requirements
            requirements.revocationLists = new
            return policy.replacing(requirements)
        }
        let entries = hosts.mapValues { entry in
            replaced(entry.policy).map { HostEntry(entry, policy: $0) } ?? entry
        }
        return Snapshot(self, hosts: entries, defaultPolicy: replaced(defaultPolicy) ?? defaultPolicy)
    }
}
