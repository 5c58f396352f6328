import Foundation
import PinproxyDiskStore
import PinproxyTLS
import Synchronization

/// A directory for a store, a clock that the test sets, and the store's reports.
final class StoreBed: Sendable {
    let folder: URL
    /// Milliseconds since 1970.
    private let time = Atomic<Int64>(1_000_000_000_000)
    private let events = Mutex<[DiskStoreEvent]>([])

    /// - Parameter inMemory: in a tmpfs, where nothing waits for a disk.
    init(inMemory: Bool = false) {
        let parent = inMemory ? URL(filePath: "/dev/shm") : FileManager.default.temporaryDirectory
        folder = parent.appending(path: "pinproxy-store.\(UUID().uuidString)")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var directory: String { folder.path + "/cache" }
    var bodies: [String] { (try? FileManager.default.contentsOfDirectory(atPath: directory + "/bodies")) ?? [] }
    var reported: [DiskStoreEvent] { events.withLock { $0 } }

    func open(limit: UInt64 = 100 << 20) throws -> DiskStore {
        try DiskStore(
            directory: directory, limit: limit, now: { [self] in now },
            report: { [weak self] event in self?.events.withLock { $0.append(event) } })
    }

    var now: Int64 { time.load(ordering: .relaxed) }

    func pass(_ milliseconds: Int64) { time.add(milliseconds, ordering: .relaxed) }

    /// Bytes of all files.
    var size: UInt64 { Self.size(directory) }

    static func size(_ directory: String) -> UInt64 {
        var total: UInt64 = 0
        for name in FileManager.default.enumerator(atPath: directory) ?? .init() {
            let values = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
            if values?[.type] as? FileAttributeType == .typeRegular { total += values?[.size] as? UInt64 ?? 0 }
        }
        return total
    }
}

/// A response determined by a number.
struct Sample {
    let number: Int
    var variant = 0
    /// Above 8 KiB it has a file.
    var length = 10_000

    var identity: StoredRecord.Identity {
        .init(
            key: SHA256Digest.of(Array("key \(number)".utf8)), variant: Array("variant \(variant)".utf8),
            owner: Array("uid 1000".utf8), host: "host\(number % 7).test",
            url: "https://host\(number % 7).test/\(number)")
    }

    var head: [UInt8] { Array("HTTP/1.1 200 OK\r\nETag: \"\(number)-\(variant)\"\r\n\r\n".utf8) }
    var metadata: [UInt8] { Array("metadata \(number)".utf8) }

    /// No two pieces are the same.
    var body: [UInt8] {
        var state = UInt64(number) &* 1_000_003 &+ UInt64(variant) &+ 1
        let words = (0..<(length + 7) / 8).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state
        }
        return words.withUnsafeBytes { Array($0.prefix(length)) }
    }

    @discardableResult
    func store(in store: DiskStore) throws -> StoredRecord {
        var writer = try store.writer(identity)
        try writer.append(body)
        return try writer.commit(head: head, metadata: metadata)
    }

    /// The record of this sample, if the store has it.
    func record(in store: DiskStore) -> StoredRecord? {
        store.records(of: identity.key).first { $0.identity.variant == identity.variant }
    }

    /// Its body; nil: there is no record.
    func read(from store: DiskStore) throws -> [UInt8]? {
        guard let record = record(in: store) else { return nil }
        return try Self.read(record, from: store)
    }

    static func read(_ record: StoredRecord, from store: DiskStore) throws -> [UInt8] {
        let reader = try store.reader(of: record)
        var bytes: [UInt8] = []
        while true {
            let piece = try reader.piece(from: UInt64(bytes.count))
            if piece.isEmpty { return bytes }
            bytes += piece
        }
    }
}

/// A writer from closures and arrays.
final class Kept {
    private var writer: BodyWriter?

    init(_ writer: consuming BodyWriter) { self.writer = consume writer }

    func append(_ bytes: [UInt8]) throws { try writer?.append(bytes) }

    func commit() throws {
        guard let writer = writer.take() else { return }
        _ = try writer.commit(head: [], metadata: [])
    }
}
