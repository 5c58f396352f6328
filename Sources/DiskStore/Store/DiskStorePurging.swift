package import PinproxyTLS

extension DiskStore {
    /// What a purge removed.
    package struct Purged: Sendable, Hashable {
        package var records = 0
        /// Bytes, as they counted toward the limit.
        package var bytes: UInt64 = 0
    }

    /// Removes all variants of a key. What is being stored of it isn't kept.
    @discardableResult
    package func purge(key: SHA256Digest) throws(StoringFailure) -> Purged {
        try locked { state throws(StoringFailure) in
            try state.requireUsable()
            state.abandon { $0.key == key }
            do throws(DiskProblem) {
                let found = try state.use { store throws(DiskProblem) in try store.index.siblings(of: key) } ?? []
                return try state.purge(found.map(\.id))
            } catch {
                throw .disk(error)
            }
        }
    }

    /// Removes what is stored of a host.
    @discardableResult
    package func purge(host: String) throws(StoringFailure) -> Purged { try purge { found, _ in found == host } }

    /// Removes what is stored of a URL, of all owners.
    @discardableResult
    package func purge(url: String) throws(StoringFailure) -> Purged { try purge { _, found in found == url } }

    /// Removes everything, and makes a new index: on a full or damaged disk too.
    @discardableResult
    package func purgeAll() throws(StoringFailure) -> Purged {
        try locked { state throws(StoringFailure) in
            try state.requireOpen()
            state.abandon { _ in true }
            let purged = Purged(records: state.records, bytes: state.bytes)
            do throws(DirectoryRefusal) {
                try state.open(.empty)
            } catch {
                if case .disk(_, let problem) = error { state.pauseStoring(problem) }
                throw .refused(error)
            }
            state.succeeded()
            return purged
        }
    }

    /// Removes matching responses.
    @discardableResult
    package func purge(where matches: (_ host: String, _ url: String) -> Bool) throws(StoringFailure) -> Purged {
        // Responses stored from here on came after the purge.
        let last = try locked { state throws(StoringFailure) in
            try state.requireUsable()
            state.abandon { matches($0.host, $0.url) }
            return state.nextID()
        }
        var purged = Purged()
        var place: Int64 = 0
        while place < last {
            let batch = try scan(after: place) { matches($0.host, $0.url) && $0.id < last }
            place = batch.place ?? last
            let part = try locked { state throws(StoringFailure) in
                do throws(DiskProblem) {
                    return try state.purge(batch.entries.map(\.id))
                } catch {
                    throw .disk(error)
                }
            }
            purged.records += part.records
            purged.bytes += part.bytes
        }
        return purged
    }

    /// A part of the table, so that others get their turn between the parts.
    /// - Returns: the entries in it that `isWanted` chooses, and where it ends; nil: with the table.
    func scan(
        after id: Int64, _ isWanted: (RecordIndex.Entry) -> Bool
    ) throws(StoringFailure) -> (entries: [RecordIndex.Entry], place: Int64?) {
        try locked { state throws(StoringFailure) in
            do throws(DiskProblem) {
                let found = try state.use { store throws(DiskProblem) in try store.index.entries(after: id, 1000) }
                return (found?.filter(isWanted) ?? [], found?.last?.id)
            } catch {
                throw .disk(error)
            }
        }
    }
}

extension DiskStoreState {
    fileprivate mutating func purge(_ ids: [Int64]) throws(DiskProblem) -> DiskStore.Purged {
        let removed = try remove(ids)
        // There is room now.
        if removed.records > 0 { succeeded() }
        return .init(records: removed.records, bytes: removed.bytes)
    }
}
