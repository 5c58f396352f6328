import Glibc
import PinproxyDiskStore
import PinproxyTLS

/// Opens a store, verifies its contents, then stores and removes endlessly.
///
///     StoringProbe DIRECTORY BYTES SEED [holding]
///
/// Prints `begin`, then `opened FOUND RECORDS WRONG`: the records that it found, those that the store counts, and those
/// that differ from what was stored. Then a line for each event, and for each action. With `holding` it waits to be
/// killed once it has a body in a file that is not committed, and prints `holding`.
@main enum StoringProbe {
    /// Keys in use.
    private static let keys = 40
    /// A body has a file from its first full piece on.
    private static let piece = 64 << 10

    static func main() throws {
        let words = CommandLine.arguments
        guard words.count >= 4, let limit = UInt64(words[2]), let seed = UInt64(words[3]) else { exit(64) }
        let holds = words.dropFirst(4).first == "holding"
        say("begin")
        let store = try DiskStore(directory: words[1], limit: limit, report: { say("event \($0)") })
        let (records, wrong) = verify(store)
        say("opened \(records) \(store.status.records) \(wrong)")
        var random = Random(state: seed)
        while true { try act(store, &random, holds) }
    }

    private static func verify(_ store: DiskStore) -> (records: Int, wrong: Int) {
        var (count, wrong) = (0, 0)
        for key in 0..<keys {
            for record in store.records(of: identity(key, 0).key) {
                count += 1
                let numbers = String(decoding: record.head, as: UTF8.self).split(separator: " ").compactMap {
                    UInt64($0)
                }
                guard numbers.count == 2, record.identity.host == identity(key, 0).host else {
                    wrong += 1
                    continue
                }
                if let body = read(record, store), body != self.body(numbers[0], Int(numbers[1])) { wrong += 1 }
            }
        }
        return (count, wrong)
    }

    private static func act(_ store: DiskStore, _ random: inout Random, _ holds: Bool) throws {
        let identity = identity(random.next(keys), random.next(3))
        switch random.next(10) {
        case 0: try store.purge(host: identity.host)
        case 1: for record in store.records(of: identity.key).prefix(1) { try store.remove(record) }
        case 2:
            for record in store.records(of: identity.key) { store.touch(record) }
        case 3:
            if let record = store.records(of: identity.key).first {
                _ = try? store.update(record, head: record.head, metadata: Array("\(random.next(1 << 30))".utf8))
            }
        default:
            let (seed, length) = (UInt64(random.next(1 << 30)), random.next(random.next(2) == 0 ? 3000 : 150_000))
            var writer = try store.writer(identity)
            try writer.append(body(seed, length))
            if holds, length > piece {
                say("holding")
                // The writer would be dropped, and remove its file, if it weren't used again.
                while writer.length > 0 { pause() }
            }
            if random.next(8) > 0 { _ = try writer.commit(head: Array("\(seed) \(length)".utf8), metadata: []) }
        }
        say("did")
    }

    private static func read(_ record: StoredRecord, _ store: DiskStore) -> [UInt8]? {
        guard let reader = try? store.reader(of: record) else { return nil }
        var bytes: [UInt8] = []
        while let piece = try? reader.piece(from: UInt64(bytes.count)) {
            if piece.isEmpty { return bytes }
            bytes += piece
        }
        return nil
    }

    private static func identity(_ key: Int, _ variant: Int) -> StoredRecord.Identity {
        .init(
            key: SHA256Digest.of(Array("\(key)".utf8)), variant: [UInt8(variant)], owner: [],
            host: "host\(key % 5).test", url: "https://host\(key % 5).test/\(key)")
    }

    private static func body(_ seed: UInt64, _ length: Int) -> [UInt8] {
        var random = Random(state: seed)
        var bytes: [UInt8] = []
        while bytes.count < length {
            bytes += [UInt8](repeating: UInt8(random.next(256)), count: min(200, length - bytes.count))
        }
        return bytes
    }

    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        if write(STDOUT_FILENO, bytes, bytes.count) != bytes.count { exit(1) }
    }

    private struct Random {
        var state: UInt64

        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }

        mutating func next(_ bound: Int) -> Int { Int(next() >> 16) % bound }
    }
}
