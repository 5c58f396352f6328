internal import CPinproxySQLite
import PinproxyTLS

/// The index of a store: a row for each record, in SQLite.
///
/// The connection locks the database for this process, and keeps what processes would share in its own memory: nobody
/// can cut a mapped file off below it. With `synchronous=NORMAL` a commit waits for no disk, only a checkpoint does. A
/// machine that loses power loses the last commits, never the index.
struct RecordIndex: ~Copyable {
    private static let columns =
        "id, stored, used, length, key, host, url, variant, owner, body, digest, head, metadata, size"

    private let select: SQLiteStatement
    private let selectBody: SQLiteStatement
    private let siblings: SQLiteStatement
    private let insertion: SQLiteStatement
    private let change: SQLiteStatement
    private let use: SQLiteStatement
    private let selectSize: SQLiteStatement
    private let deletion: SQLiteStatement
    private let uses: SQLiteStatement
    private let following: SQLiteStatement
    private let connection: SQLiteConnection

    static func open(_ path: String, isNew: Bool) throws(IndexDefect) -> RecordIndex {
        let connection = try IndexSchema.open(path, isNew: isNew)
        do throws(DiskProblem) { return try prepare(connection) } catch { throw .disk(error) }
    }

    private static func prepare(_ connection: consuming SQLiteConnection) throws(DiskProblem) -> RecordIndex {
        RecordIndex(
            select: try connection.statement("SELECT \(columns) FROM records WHERE key = ?"),
            selectBody: try connection.statement("SELECT pieces, content FROM records WHERE id = ?"),
            siblings: try connection.statement("SELECT id, used, variant FROM records WHERE key = ?"),
            insertion: try connection.statement(
                "INSERT INTO records(\(columns), pieces, content) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
            change: try connection.statement(
                "UPDATE records SET head = ?, metadata = ?, digest = ?, size = ? WHERE id = ?"),
            use: try connection.statement("UPDATE records SET used = ? WHERE id = ?"),
            selectSize: try connection.statement("SELECT size FROM records WHERE id = ?"),
            deletion: try connection.statement("DELETE FROM records WHERE id = ? RETURNING size"),
            uses: try connection.statement("SELECT id, used, size FROM records WHERE id > ? ORDER BY id LIMIT ?"),
            following: try connection.statement(
                "SELECT id, size, key, host, url FROM records WHERE id > ? ORDER BY id LIMIT ?"),
            connection: connection)
    }

    // MARK: Reading

    /// A row, and whether its digest covers it.
    struct Found {
        let record: StoredRecord
        let isSound: Bool
    }

    func records(of key: SHA256Digest) throws(DiskProblem) -> [Found] {
        try select.rows([.bytes(key.bytes)]) { row in
            let none = SHA256Digest(bytes: [UInt8](repeating: 0, count: 32))!
            let digests = (4...10).filter { [4, 9, 10].contains($0) }.map { SHA256Digest(bytes: row.bytes(CInt($0))) }
            let record = StoredRecord(
                identity: .init(
                    key: digests[0] ?? none, variant: row.bytes(7), owner: row.bytes(8), host: row.text(5),
                    url: row.text(6)),
                head: row.bytes(11), metadata: row.bytes(12),
                // A negative length is a mutated one.
                length: UInt64(exactly: row.integer(3)) ?? .max >> 1,
                stored: row.integer(1), lastUsed: Self.time(row.integer(2)), id: row.integer(0),
                body: digests[1] ?? none)
            let isSound =
                record.identity.key == key && record.digest == digests[2]
                && record.size == UInt64(bitPattern: row.integer(13))
            return Found(record: record, isSound: isSound)
        }
    }

    /// The key and the tags of a body's pieces, and the body itself if it has no file; nil: there is no such record.
    func body(of id: Int64) throws(DiskProblem) -> (pieces: [UInt8], content: [UInt8])? {
        try selectBody.rows([.integer(id)]) { ($0.bytes(0), $0.bytes(1)) }.first
    }

    struct Sibling {
        let id: Int64
        let lastUsed: Int64
        let variant: [UInt8]
    }

    func siblings(of key: SHA256Digest) throws(DiskProblem) -> [Sibling] {
        try siblings.rows([.bytes(key.bytes)]) {
            Sibling(id: $0.integer(0), lastUsed: Self.time($0.integer(1)), variant: $0.bytes(2))
        }
    }

    struct Use {
        let id: Int64
        let lastUsed: Int64
        let size: UInt64
    }

    /// In the order of their numbers.
    func uses(after id: Int64, _ count: Int) throws(DiskProblem) -> [Use] {
        try uses.rows([.integer(id), .integer(Int64(count))]) {
            Use(id: $0.integer(0), lastUsed: Self.time($0.integer(1)), size: Self.size($0.integer(2)))
        }
    }

    struct Size {
        let id: Int64
        let size: UInt64
        let hasFile: Bool
    }

    /// The sizes of all records, read from the table itself.
    func sizes() throws(DiskProblem) -> [Size] {
        try connection.statement("SELECT id, size, length FROM records NOT INDEXED").rows([]) {
            Size(id: $0.integer(0), size: Self.size($0.integer(1)), hasFile: $0.integer(2) > Piece.inlineLimit)
        }
    }

    struct Entry {
        let id: Int64
        let size: UInt64
        let key: SHA256Digest?
        let host: String
        let url: String
    }

    /// In the order of their numbers, read from the table itself: an index that lacks a row hides nothing from it.
    func entries(after id: Int64, _ count: Int) throws(DiskProblem) -> [Entry] {
        try following.rows([.integer(id), .integer(Int64(count))]) {
            Entry(
                id: $0.integer(0), size: Self.size($0.integer(1)), key: SHA256Digest(bytes: $0.bytes(2)),
                host: $0.text(3), url: $0.text(4))
        }
    }

    /// The digest doesn't cover it: no difference of mutated times overflows.
    private static func time(_ stored: Int64) -> Int64 { max(0, min(stored, 1 << 53)) }

    /// No sum of mutated sizes overflows.
    private static func size(_ stored: Int64) -> UInt64 { UInt64(max(0, min(stored, 1 << 44))) }

    // MARK: Writing

    func transaction<Result>(_ body: () throws(DiskProblem) -> Result) throws(DiskProblem) -> Result {
        try connection.transaction(body)
    }

    func insert(_ record: StoredRecord, pieces: [UInt8], content: [UInt8]) throws(DiskProblem) {
        try insertion.run([
            .integer(record.id), .integer(record.stored), .integer(record.lastUsed), .integer(Int64(record.length)),
            .bytes(record.identity.key.bytes), .text(record.identity.host), .text(record.identity.url),
            .bytes(record.identity.variant), .bytes(record.identity.owner), .bytes(record.body.bytes),
            .bytes(record.digest.bytes), .bytes(record.head), .bytes(record.metadata), .integer(Int64(record.size)),
            .bytes(pieces), .bytes(content),
        ])
    }

    /// Within a transaction.
    /// - Returns: its size so far; nil: there is no such record.
    func change(_ record: StoredRecord) throws(DiskProblem) -> UInt64? {
        let size = try selectSize.rows([.integer(record.id)]) { Self.size($0.integer(0)) }.first
        if size == nil { return nil }
        try change.run([
            .bytes(record.head), .bytes(record.metadata), .bytes(record.digest.bytes), .integer(Int64(record.size)),
            .integer(record.id),
        ])
        return size
    }

    /// - Parameter times: when records were used, by their number.
    func use(_ times: [Int64: Int64]) throws(DiskProblem) {
        for (id, time) in times { try use.run([.integer(time), .integer(id)]) }
    }

    /// - Returns: its size; nil: there was no such record.
    func delete(_ id: Int64) throws(DiskProblem) -> UInt64? {
        try deletion.rows([.integer(id)]) { Self.size($0.integer(0)) }.first
    }

    /// Gives pages of deleted rows back to the file system.
    func shrink() throws(DiskProblem) { try connection.execute("PRAGMA incremental_vacuum(1000)") }
}
