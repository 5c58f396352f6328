import PinproxyTLS

package struct DiskStoreStatus: Sendable, Hashable {
    package let records: Int
    /// Bytes of all records, as they count toward the limit.
    package let bytes: UInt64
    package let limit: UInt64
    /// Records evicted since the store was opened.
    package let evicted: Int
    /// Records that were found changed and removed, since the store was opened.
    package let damaged: Int
    /// Why nothing is stored now.
    package let pause: String?
}

package struct HostUsage: Sendable, Hashable {
    package let host: String
    package var records: Int
    package var bytes: UInt64
}

extension DiskStore {
    /// Costs no disk access.
    package var status: DiskStoreStatus {
        locked { state in
            let now = state.now
            let pause = state.pause.flatMap { $0.holds(at: now) ? "\($0.problem)" : nil }
            return DiskStoreStatus(
                records: state.records, bytes: state.bytes, limit: limit, evicted: state.evicted,
                damaged: state.damaged, pause: pause ?? state.refusal.map { "\($0)" })
        }
    }

    /// The hosts with the most bytes. It reads the whole index, with turns for others in between.
    package func topHosts(_ count: Int) throws(StoringFailure) -> [HostUsage] {
        var hosts: [String: HostUsage] = [:]
        try visit { entry in
            hosts[entry.host, default: HostUsage(host: entry.host, records: 0, bytes: 0)].records += 1
            hosts[entry.host]?.bytes += entry.size
        }
        return Array(hosts.values.sorted { ($1.bytes, $0.host) < ($0.bytes, $1.host) }.prefix(count))
    }

    /// The records of a URL, of all keys and owners, for display. It reads the whole index.
    package func records(url: String) throws(StoringFailure) -> [StoredRecord] {
        var found: [Int64: SHA256Digest] = [:]
        try visit { entry in if entry.url == url { found[entry.id] = entry.key } }
        return Set(found.values).flatMap { records(of: $0) }.filter { found[$0.id] != nil }
            .sorted { $0.id < $1.id }
    }

    private func visit(_ body: (RecordIndex.Entry) -> Void) throws(StoringFailure) {
        var place: Int64? = 0
        while let start = place {
            let part = try scan(after: start) { _ in true }
            part.entries.forEach(body)
            place = part.place
        }
    }
}
