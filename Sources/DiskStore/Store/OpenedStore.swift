import PinproxyTLS

/// A locked directory with its index. Ends with its last use: the two can be opened again at once.
struct OpenedStore: ~Copyable {
    enum Start {
        case asFound
        /// The index turned out to be damaged, for this reason.
        case settingIndexAside(String)
        /// Nothing is kept.
        case empty
    }

    let directory: StoreDirectory
    let index: RecordIndex
    /// The index's files at the time of opening.
    private let files: [UInt64]

    /// What was found.
    struct Contents {
        var records = 0
        /// Bytes, as they count toward the limit.
        var bytes: UInt64 = 0
        var lastID: Int64 = 0
        var events: [DiskStoreEvent] = []
    }
    let contents: Contents

    /// - Parameter writing: bodies that have no row yet.
    init(_ path: String, _ start: Start = .asFound, writing: Set<Int64> = []) throws(DirectoryRefusal) {
        let directory = try StoreDirectory(path)
        var contents = Contents()
        let index = try Self.openIndex(directory, start, &contents)
        do throws(DiskProblem) {
            try Self.sweep(directory, index, writing, &contents)
        } catch {
            throw .disk(path: path, error)
        }
        files = directory.indexFiles
        self.index = index
        self.directory = directory
        self.contents = contents
    }

    /// The file that was deleted or replaced since it was opened; nil: none.
    var missing: String? { directory.missing(files) }

    private static func openIndex(
        _ directory: borrowing StoreDirectory, _ start: Start, _ contents: inout Contents
    ) throws(DirectoryRefusal) -> RecordIndex {
        do throws(DiskProblem) {
            let defect: String?
            switch start {
            case .asFound:
                let (path, isNew) = try directory.prepareIndex()
                do throws(IndexDefect) {
                    let index = try RecordIndex.open(path, isNew: isNew)
                    // It was kept for an inspection until now.
                    if !isNew { try? directory.removeSetAside() }
                    return index
                } catch {
                    if case .disk(let problem) = error, !problem.isDamage { throw problem }
                    defect = "\(error)"
                }
            case .settingIndexAside(let reason): defect = reason
            case .empty:
                try directory.removeIndex()
                try directory.removeSetAside()
                defect = nil
            }
            if let defect {
                contents.events.append(.begunAnew(reason: defect, setAside: try directory.setIndexAside()))
            }
            let path = try directory.prepareIndex().path
            do throws(IndexDefect) {
                return try RecordIndex.open(path, isNew: true)
            } catch .disk(let problem) {
                throw problem
            } catch {
                throw .index(code: 0, system: 0, "\(error)")
            }
        } catch {
            throw error.isInUse ? .inUse(path: directory.path) : .disk(path: directory.path, error)
        }
    }

    /// Removes bodies without a row and rows without a body, and counts the others.
    private static func sweep(
        _ directory: borrowing StoreDirectory, _ index: borrowing RecordIndex, _ writing: Set<Int64>,
        _ contents: inout Contents
    ) throws(DiskProblem) {
        var found = Contents()
        var awaited: [Int64: UInt64] = [:]
        for row in try index.sizes() {
            if row.id <= StoreDirectory.lastID { found.lastID = max(found.lastID, row.id) }
            if row.hasFile {
                awaited[row.id] = row.size
            } else {
                found.records += 1
                found.bytes += row.size
            }
        }
        var orphans: [Int64] = []
        let strangers = try directory.visitBodies { id in
            found.lastID = max(found.lastID, id)
            if let size = awaited.removeValue(forKey: id) {
                found.records += 1
                found.bytes += size
            } else if !writing.contains(id) {
                orphans.append(id)
            }
        }
        for id in orphans { directory.removeBody(id) }
        let bodiless = awaited.keys
        if !bodiless.isEmpty {
            try index.transaction { () throws(DiskProblem) in for id in bodiless { _ = try index.delete(id) } }
        }
        found.events = contents.events
        if orphans.count + strangers + bodiless.count > 0 {
            found.events.append(.swept(bodies: orphans.count + strangers, rows: bodiless.count))
        }
        contents = found
    }
}
