internal import CPinproxySQLite
import Glibc

/// One connection to a database, for one thread at a time.
struct SQLiteConnection: ~Copyable {
    fileprivate let raw: OpaquePointer

    /// - Parameter path: of an existing file, without symbolic links.
    init(_ path: String) throws(DiskProblem) {
        var raw: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &raw, flags, nil)
        guard code == SQLITE_OK, let raw else {
            let problem = DiskProblem(code, of: raw)
            sqlite3_close_v2(raw)
            throw problem
        }
        self.raw = raw
        // A mutated index must not make it allocate more.
        sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 16 << 20)
    }

    // Statements may outlive it: the last to go closes the database.
    deinit { sqlite3_close_v2(raw) }

    func execute(_ sql: String) throws(DiskProblem) {
        let code = sqlite3_exec(raw, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw DiskProblem(code, of: raw) }
    }

    func statement(_ sql: String) throws(DiskProblem) -> SQLiteStatement { try SQLiteStatement(sql, raw) }

    /// The first column of the first row.
    func integer(_ sql: String) throws(DiskProblem) -> Int64 {
        try statement(sql).rows([]) { $0.integer(0) }.first ?? 0
    }

    func texts(_ sql: String) throws(DiskProblem) -> [String] { try statement(sql).rows([]) { $0.text(0) } }

    /// All of it or nothing.
    func transaction<Result>(_ body: () throws(DiskProblem) -> Result) throws(DiskProblem) -> Result {
        try execute("BEGIN IMMEDIATE")
        do {
            let result = try body()
            try execute("COMMIT")
            return result
        } catch {
            // Some errors have rolled back already.
            if sqlite3_get_autocommit(raw) == 0 { sqlite3_exec(raw, "ROLLBACK", nil, nil, nil) }
            throw error
        }
    }
}

/// A prepared statement.
struct SQLiteStatement: ~Copyable {
    enum Value {
        case integer(Int64)
        case bytes([UInt8])
        case text(String)
    }

    private let raw: OpaquePointer
    /// Open as long as this is.
    private let connection: OpaquePointer

    fileprivate init(_ sql: String, _ connection: OpaquePointer) throws(DiskProblem) {
        var raw: OpaquePointer?
        let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &raw, nil)
        guard code == SQLITE_OK, let raw else { throw DiskProblem(code, of: connection) }
        self.raw = raw
        self.connection = connection
    }

    deinit { sqlite3_finalize(raw) }

    func run(_ values: [Value]) throws(DiskProblem) { _ = try rows(values) { _ in () } }

    func rows<Result>(_ values: [Value], _ read: (Row) -> Result) throws(DiskProblem) -> [Result] {
        defer {
            sqlite3_reset(raw)
            sqlite3_clear_bindings(raw)
        }
        for (index, value) in values.enumerated() {
            let code = bind(value, CInt(index + 1))
            guard code == SQLITE_OK else { throw DiskProblem(code, of: connection) }
        }
        var results: [Result] = []
        while true {
            let code = sqlite3_step(raw)
            if code == SQLITE_DONE { return results }
            guard code == SQLITE_ROW else { throw DiskProblem(code, of: connection) }
            results.append(read(Row(raw: raw)))
        }
    }

    private func bind(_ value: Value, _ index: CInt) -> CInt {
        // SQLITE_TRANSIENT, a macro that Swift doesn't import: SQLite copies the bytes.
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        switch value {
        case .integer(let number): return sqlite3_bind_int64(raw, index, number)
        case .bytes(let bytes):
            // A null pointer would be bound as NULL.
            if bytes.isEmpty { return sqlite3_bind_zeroblob(raw, index, 0) }
            return sqlite3_bind_blob64(raw, index, bytes, UInt64(bytes.count), copied)
        case .text(var text):
            return text.withUTF8 { text in
                text.withMemoryRebound(to: CChar.self) {
                    sqlite3_bind_text64(raw, index, $0.baseAddress, UInt64($0.count), copied, UInt8(SQLITE_UTF8))
                }
            }
        }
    }

    /// Valid during the call that gets it.
    struct Row {
        fileprivate let raw: OpaquePointer

        func integer(_ column: CInt) -> Int64 { sqlite3_column_int64(raw, column) }

        func bytes(_ column: CInt) -> [UInt8] {
            guard let start = sqlite3_column_blob(raw, column) else { return [] }
            return [UInt8](UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(raw, column))))
        }

        func text(_ column: CInt) -> String { String(decoding: bytes(column), as: UTF8.self) }
    }
}

extension DiskProblem {
    init(_ code: CInt, of connection: OpaquePointer?) {
        let system = connection.map { sqlite3_system_errno($0) } ?? 0
        let message = connection.flatMap { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
        self = .index(code: code, system: system, message.map { String(cString: $0) } ?? "code \(code)")
    }
}
