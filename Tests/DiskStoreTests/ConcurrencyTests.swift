import Foundation
import PinproxyDiskStore
import Synchronization
import Testing

@Suite struct ConcurrencyTests {
    /// Eight threads store, read, touch, update and purge the same few responses. The store is always at its limit.
    @Test func eightThreadsNeverSeeAWrongByte() throws {
        let bed = StoreBed(inMemory: true)
        let limit: UInt64 = 2 << 20
        let store = try bed.open(limit: limit)
        let wrong = Mutex<[String]>([])
        let hits = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            var random = SystemRandomNumberGenerator()
            for _ in 0..<300 {
                let number = Int.random(in: 0..<55, using: &random)
                // The length distinguishes the bodies of one number, and the head has the length.
                let sample = Sample(number: number, length: number * 1700 + 9000 + thread)
                do {
                    switch Int.random(in: 0..<10, using: &random) {
                    case 0: try store.purge(url: sample.identity.url)
                    case 1: if let record = sample.record(in: store) { try store.remove(record) }
                    case 2...5: try Self.storeWithLength(sample, in: store)
                    default:
                        guard let record = sample.record(in: store) else { continue }
                        let read = try Sample.read(record, from: store)
                        let length = Int(String(decoding: record.head, as: UTF8.self)) ?? -1
                        if read != Sample(number: number, length: length).body {
                            wrong.withLock { $0.append("\(number): \(read.count) bytes for \(length)") }
                        }
                        hits.add(1, ordering: .relaxed)
                        store.touch(record)
                        _ = try store.update(record, head: record.head, metadata: [UInt8(thread)])
                    }
                    if store.status.bytes > limit { wrong.withLock { $0.append("over the limit") } }
                } catch ReadingFailure.removed, StoringFailure.purged, StoringFailure.noRoom {
                    // Another thread was first.
                } catch {
                    wrong.withLock { $0.append("\(error)") }
                }
            }
        }
        #expect(wrong.withLock { $0 } == [])
        #expect(hits.load(ordering: .relaxed) > 50 && store.status.evicted > 0 && store.status.damaged == 0)
        #expect(bed.bodies.count == store.status.records)
        let status = store.status
        store.close()
        let again = try bed.open(limit: limit)
        #expect(again.status.records == status.records && again.status.bytes == status.bytes)
    }

    /// Its files are deleted again and again while others use it.
    @Test func filesMayBeDeletedAtAnyTime() throws {
        let bed = StoreBed(inMemory: true)
        let store = try bed.open()
        let wrong = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<100 {
                let sample = Sample(number: number % 20, length: number % 20 * 5000)
                switch thread {
                case 0:
                    let names = ["", "/index.sqlite", "/index.sqlite-wal", "/bodies", "/bodies/\(number)"]
                    try? FileManager.default.removeItem(atPath: bed.directory + names[number % names.count])
                default:
                    _ = try? sample.store(in: store)
                    if let body = try? sample.read(from: store), body != sample.body {
                        wrong.withLock { $0.append("\(number)") }
                    }
                }
            }
        }
        #expect(wrong.withLock { $0 } == [])
        // A failure between two of its steps may have paused it.
        bed.pass(30_001)
        try Sample(number: 1).store(in: store)
        #expect(try Sample(number: 1).read(from: store) == Sample(number: 1).body)
        #expect(bed.bodies.count <= store.status.records)
    }

    /// The report callback may use the store.
    @Test func aReportMayCallTheStore() throws {
        let bed = StoreBed()
        let box = Mutex<DiskStore?>(nil)
        let seen = Atomic(0)
        let store = try DiskStore(
            directory: bed.directory, limit: 400_000,
            report: { _ in
                guard let store = box.withLock({ $0 }) else { return }
                seen.add(store.status.records, ordering: .relaxed)
                _ = try? Sample(number: 1000, length: 10).store(in: store)
            })
        box.withLock { $0 = store }
        for number in 0..<60 { try Sample(number: number, length: 15_000).store(in: store) }
        #expect(seen.load(ordering: .relaxed) > 0)
        box.withLock { $0 = nil }
    }

    private static func storeWithLength(_ sample: Sample, in store: DiskStore) throws {
        var writer = try store.writer(sample.identity)
        let body = sample.body
        for piece in stride(from: 0, to: sample.length, by: 10_000) {
            try writer.append(Array(body[piece..<min(sample.length, piece + 10_000)]))
        }
        _ = try writer.commit(head: Array("\(sample.length)".utf8), metadata: [])
    }
}
