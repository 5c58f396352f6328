internal import FoundationEssentials
internal import Glibc
package import PinproxySecurity
package import PinproxyTLS

/// Entries that enforce their pins later, or on some machines.
extension Snapshot {
    /// The same configuration with more entries enforced by `enforce_after`; nil: no entry changes.
    package func enforcing(_ enforced: EnforcedEntries) -> Snapshot? {
        hosts.enforcing(enforced).map { Snapshot(self, hosts: $0) }
    }

    /// The warnings that `check` prints and every start and reload logs, also of entries that only report for now.
    package func warnings(at time: UnixTime) -> [Problem] {
        let reported = hosts.values.lazy.filter { $0.policy.rollout != nil && $0.policy.onlyReports(at: time) }
        var found = warnings
        for entry in reported.prefix(Findings.limit) {
            guard let rollout = entry.policy.rollout else { continue }
            // Not "insecure": it is planned, perhaps on most machines of a fleet.
            let text = "\(Self.rolloutWarning)\(rollout.text(at: time)): one that doesn't match is logged, not refused"
            found.append(Problem(.warning, at: entry.place, text))
        }
        let others = reported.dropFirst(Findings.limit).count
        if others > 0, let last = found.last {
            found.append(
                Problem(.warning, at: Place(file: last.place.file), "\(others) more entries only report for now"))
        }
        return found
    }

    /// Begins the warning of an entry that only reports.
    package static let reportWarning = "insecure: enforcement is report"
    /// Begins that of an entry that only reports for now.
    package static let rolloutWarning = "the pins are "
}

extension HostTable<HostEntry> {
    /// Nil: none is enforced that wasn't before.
    func enforcing(_ enforced: EnforcedEntries) -> HostTable<HostEntry>? {
        guard !enforced.entries.isEmpty else { return nil }
        func fresh(_ entry: HostEntry) -> HostEntry? {
            guard entry.policy.rollout?.awaited != nil, let since = enforced.since(entry.pattern, entry.policy) else {
                return nil
            }
            return entry.policy.enforced(since: since).map { HostEntry(entry, policy: $0) }
        }
        guard values.contains(where: { fresh($0) != nil }) else { return nil }
        return mapValues { fresh($0) ?? $0 }
    }

    /// Enforces what the proxy of a state directory has written down. Without the file, entries are reported until they
    /// have been counted again, which is no reason not to start.
    func enforcing(asWrittenIn directory: String, _ findings: Findings) -> HostTable<HostEntry> {
        guard values.contains(where: { $0.policy.rollout?.awaited != nil }) else { return self }
        do throws(Reason) {
            return enforcing(try EnforcedEntries.read(in: directory)) ?? self
        } catch {
            findings.warning(
                Place(file: "\(directory)/\(EnforcedEntries.fileName)"),
                "\(error.text): entries with enforce_after are taken for reported")
            return self
        }
    }
}

extension EnforcedEntries {
    /// 10,000 entries with a hundred pins each.
    private static let limit = 64 << 20

    /// Empty without the file.
    fileprivate static func read(in directory: String) throws(Reason) -> EnforcedEntries {
        let bytes: [UInt8]
        do throws(FileProblem) {
            bytes = try TrustedDirectory(directory).read(fileName, limit: limit).bytes
        } catch .system(ENOENT) {
            return EnforcedEntries()
        } catch {
            throw Reason("can't be read: \(error)")
        }
        do {
            return try JSONDecoder().decode(EnforcedEntries.self, from: Data(bytes))
        } catch {
            throw Reason("it is not in the form that this version writes")
        }
    }
}
