import CPinproxySQLite

/// Changes an index that no store has open.
enum Database {
    struct Failure: Error {
        let code: CInt
    }

    static func execute(_ sql: String, _ path: String) throws {
        var raw: OpaquePointer?
        defer { sqlite3_close(raw) }
        var code = sqlite3_open_v2(path, &raw, SQLITE_OPEN_READWRITE, nil)
        if code == SQLITE_OK { code = sqlite3_exec(raw, sql, nil, nil, nil) }
        guard code == SQLITE_OK else { throw Failure(code: code) }
    }
}
