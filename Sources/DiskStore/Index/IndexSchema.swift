/// Opens the database of an index, and says what a sound one looks like.
enum IndexSchema {
    /// "pinC": marks the database as a store's (`PRAGMA application_id`).
    private static let application: Int64 = 0x7069_6E43
    private static let version: Int64 = 2
    private static let statements = [
        // `pieces` and `content` are last: reading the others doesn't touch their pages. There is no index by use:
        // it would cost each use more than evictions cost without it.
        """
        CREATE TABLE records(id INTEGER PRIMARY KEY, size INTEGER NOT NULL, stored INTEGER NOT NULL, \
        used INTEGER NOT NULL, length INTEGER NOT NULL, key BLOB NOT NULL, host TEXT NOT NULL, url TEXT NOT NULL, \
        variant BLOB NOT NULL, owner BLOB NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL, head BLOB NOT NULL, \
        metadata BLOB NOT NULL, pieces BLOB NOT NULL, content BLOB NOT NULL) STRICT
        """,
        "CREATE INDEX by_key ON records(key)",
    ]

    /// - Parameters:
    ///   - path: of an existing file.
    ///   - isNew: it is empty.
    static func open(_ path: String, isNew: Bool) throws(IndexDefect) -> SQLiteConnection {
        let reason: String
        do throws(DiskProblem) {
            let connection = try SQLiteConnection(path)
            try configure(connection)
            // The process that made the file may have been killed right afterwards.
            let isEmpty = try connection.texts("SELECT sql FROM sqlite_schema").isEmpty
            if isNew || isEmpty { try create(connection) }
            guard let defect = try defect(connection) else { return connection }
            reason = defect
        } catch {
            throw .disk(error)
        }
        throw .foreign(reason)
    }

    private static func configure(_ connection: borrowing SQLiteConnection) throws(DiskProblem) {
        // The lock first: it holds for the first access. The vacuum before there is a page.
        try connection.execute(
            """
            PRAGMA locking_mode=EXCLUSIVE; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA mmap_size=0; \
            PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA cache_size=-4096; \
            PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=1000; \
            PRAGMA journal_size_limit=4194304
            """)
    }

    private static func create(_ connection: borrowing SQLiteConnection) throws(DiskProblem) {
        try connection.transaction { () throws(DiskProblem) in
            for statement in statements { try connection.execute(statement) }
            try connection.execute("PRAGMA application_id=\(application); PRAGMA user_version=\(version)")
        }
    }

    private static func defect(_ connection: borrowing SQLiteConnection) throws(DiskProblem) -> String? {
        let mode = try connection.texts("PRAGMA journal_mode")
        if mode != ["wal"] { return "it has no write-ahead log" }
        if try connection.integer("PRAGMA application_id") != application { return "not the index of a cache" }
        let found = try connection.integer("PRAGMA user_version")
        if found != version { return "version \(found) of the index, not \(version)" }
        if try connection.texts("SELECT sql FROM sqlite_schema ORDER BY rowid") != statements {
            return "other tables than a cache has"
        }
        let report = try connection.texts("PRAGMA quick_check(1)")
        return report == ["ok"] ? nil : "damaged: \(report.first ?? "no report")"
    }
}

/// Why a file isn't taken for the index of a store.
enum IndexDefect: Error, CustomStringConvertible {
    case disk(DiskProblem)
    /// The file isn't an index of this format, in words.
    case foreign(String)

    var description: String {
        switch self {
        case .disk(let problem): "\(problem)"
        case .foreign(let reason): reason
        }
    }
}
