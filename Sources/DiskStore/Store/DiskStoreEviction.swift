import Synchronization

extension DiskStore {
    /// Percent of the limit that stay when room is made.
    private static let remainder: UInt64 = 60

    /// Makes room if more than the limit is used.
    func keepLimit() {
        if status.bytes > limit { _ = try? eviction.withLock { _ throws(StoringFailure) in try evict() } }
        deliver()
    }

    /// Removes the least recently used records until ``remainder`` of the limit are used. Others get their turn between
    /// the steps. The caller holds ``eviction``, and reports what happened afterwards.
    /// - Returns: whether there was one.
    func evict() throws(StoringFailure) -> Bool {
        var (count, freed) = (0, UInt64(0))
        defer {
            if count > 0 {
                state.withLock { state in state.events.append(.evicted(records: count, bytes: freed)) }
            }
        }
        var oldest = try oldest()[...]
        while true {
            let step = try state.withLock { state throws(StoringFailure) in
                try state.evict(to: limit / 100 * Self.remainder, &oldest)
            }
            count += step.records
            freed += step.bytes
            if oldest.isEmpty || step.isEnough { return count > 0 }
        }
    }

    /// All records, the least recently used first: one look at the whole index for 40 % of it.
    private func oldest() throws(StoringFailure) -> [RecordIndex.Use] {
        var uses: [RecordIndex.Use] = []
        var place: Int64? = 0
        while let start = place {
            let part = try state.withLock { state throws(StoringFailure) in
                state.flushTouches()
                return try state.uses(after: start)
            }
            uses += part
            place = part.last?.id
        }
        return uses.sorted { ($0.lastUsed, $0.id) < ($1.lastUsed, $1.id) }
    }
}

extension DiskStoreState {
    fileprivate mutating func uses(after id: Int64) throws(StoringFailure) -> [RecordIndex.Use] {
        do throws(DiskProblem) {
            return try use { store throws(DiskProblem) in try store.index.uses(after: id, 4000) } ?? []
        } catch {
            throw .disk(error)
        }
    }

    /// Removes some of the least recently used records.
    /// - Parameters:
    ///   - target: bytes.
    ///   - oldest: what is removed is taken from it.
    fileprivate mutating func evict(
        to target: UInt64, _ oldest: inout ArraySlice<RecordIndex.Use>
    ) throws(StoringFailure) -> (records: Int, bytes: UInt64, isEnough: Bool) {
        try requireOpen()
        var excess = bytes + reserved
        var victims: [Int64] = []
        while excess > target, victims.count < 64, let victim = oldest.popFirst() {
            victims.append(victim.id)
            excess -= min(excess, victim.size)
        }
        do throws(DiskProblem) {
            let removed = try remove(victims)
            evicted += removed.records
            return (removed.records, removed.bytes, bytes + reserved <= target)
        } catch {
            throw .disk(error)
        }
    }
}
