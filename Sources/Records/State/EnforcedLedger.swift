package import Logging
package import PinproxyConfiguration
package import PinproxySecurity
package import PinproxyTLS

/// Remembers the entries that `enforce_after` has enforced, in `enforced.json`. On the daemon's main loop.
package struct EnforcedLedger {
    private let kept: KeptValue<EnforcedEntries>
    private let writer: StateWriter

    package init(directory: String, writer: StateWriter, logger: Logger) {
        kept = KeptValue(
            EnforcedEntries(), in: StateFile(EnforcedEntries.fileName, in: directory), logger: logger)
        self.writer = writer
    }

    package var entries: EnforcedEntries { kept.value }

    /// Writes down more entries. After a failure nothing is remembered of them: they may not be enforced.
    /// - Returns: whether the file has them.
    package func add(_ entries: [HostEntry], at time: UnixTime) -> Bool {
        // The caller retries every minute; queued writes would pile up behind the disk.
        guard !writer.isStuck else { return false }
        let before = kept.value
        kept.change { enforced in
            for entry in entries { _ = enforced.add(entry.pattern, entry.policy, at: time) }
        }
        if let outcome = writer.now({ [kept] in kept.save(forced: true) }), outcome == nil { return true }
        kept.change { $0 = before }
        return false
    }

    /// Forgets the entries that the configuration no longer enforces after so much evidence.
    /// - Returns: their patterns.
    package func settle(_ snapshot: Snapshot) -> [String] {
        guard !kept.value.entries.isEmpty else { return [] }
        var policies: [String: SecurityPolicy] = [:]
        for entry in snapshot.hosts.values where entry.policy.rollout != nil { policies[entry.pattern] = entry.policy }
        var enforced = kept.value
        let over = enforced.settle { policies[$0] }
        guard !over.isEmpty else { return [] }
        kept.change { [enforced] in $0 = enforced }
        // A configuration that is read soon may not find them.
        _ = writer.now { [kept] in kept.save() }
        return over
    }

    /// Saves the entries; called on the writer's thread.
    package var saving: @Sendable () -> Void { { [kept] in kept.save() } }
}
