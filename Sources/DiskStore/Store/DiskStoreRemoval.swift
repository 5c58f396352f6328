extension DiskStoreState {
    /// What a call removed.
    typealias Removed = (records: Int, bytes: UInt64)

    /// Removes rows and bodies, as far as they are there. On a full disk the bodies go first: their room lets the index
    /// change.
    @discardableResult
    mutating func remove(_ ids: [Int64]) throws(DiskProblem) -> Removed {
        if ids.isEmpty { return (0, 0) }
        let removed = try use { store throws(DiskProblem) in
            do throws(DiskProblem) {
                let removed = try store.delete(ids)
                for id in ids { store.directory.removeBody(id) }
                return removed
            } catch {
                for id in ids { store.directory.removeBody(id) }
                return try store.delete(ids)
            }
        }
        for id in ids { touches[id] = nil }
        self.removed(removed ?? (0, 0))
        return removed ?? (0, 0)
    }

    /// No longer counts what a transaction removed.
    mutating func removed(_ removed: Removed) {
        records -= min(removed.records, records)
        bytes -= min(removed.bytes, bytes)
    }

    /// Removes a record that isn't what was stored.
    mutating func removeDamaged(_ record: StoredRecord, _ reason: String) {
        damaged += 1
        events.append(.damaged(url: record.identity.url, reason: reason))
        _ = try? remove([record.id])
    }
}

extension OpenedStore {
    /// Within a transaction.
    func deleteRows(_ ids: [Int64]) throws(DiskProblem) -> DiskStoreState.Removed {
        var removed: DiskStoreState.Removed = (0, 0)
        for id in ids {
            guard let size = try index.delete(id) else { continue }
            removed.records += 1
            removed.bytes += size
        }
        return removed
    }

    fileprivate func delete(_ ids: [Int64]) throws(DiskProblem) -> DiskStoreState.Removed {
        try index.transaction { () throws(DiskProblem) in
            let removed = try deleteRows(ids)
            if removed.records > 1 { try index.shrink() }
            return removed
        }
    }
}
