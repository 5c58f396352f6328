import Foundation
import PinproxyDiskStore
import PinproxyTLS
import Testing

@Suite struct StoringTests {
    @Test(arguments: [0, 1, 8192, 8193, 65535, 65536, 65537, 200_000]) func whatWasStoredIsReadAfterARestart(
        _ length: Int
    ) throws {
        let bed = StoreBed()
        let sample = Sample(number: 1, length: length)
        do {
            let store = try bed.open()
            let record = try sample.store(in: store)
            #expect(record.length == UInt64(length))
            #expect(try sample.read(from: store) == sample.body)
            store.close()
        }
        let store = try bed.open()
        let record = try #require(sample.record(in: store))
        #expect(record.identity == sample.identity)
        #expect(record.head == sample.head && record.metadata == sample.metadata)
        #expect(record.stored == bed.now && record.lastUsed == record.stored)
        #expect(try sample.read(from: store) == sample.body)
        #expect(bed.reported.isEmpty)
    }

    @Test func everyFileIsForItsUserAlone() throws {
        let bed = StoreBed()
        // Not even a permissive umask makes them readable.
        let store = try bed.open()
        try Sample(number: 1).store(in: store)
        let manager = FileManager.default
        let names = [""] + (manager.enumerator(atPath: bed.directory)?.compactMap { $0 as? String } ?? [])
        #expect(names.count == 5, "\(names)")
        for name in names {
            let values = try manager.attributesOfItem(atPath: "\(bed.directory)/\(name)")
            let isFolder = values[.type] as? FileAttributeType == .typeDirectory
            #expect(values[.posixPermissions] as? Int == (isFolder ? 0o700 : 0o600), "\(name)")
        }
    }

    @Test func anyOffsetCanBeRead() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 150_000)
        let reader = try store.reader(of: try sample.store(in: store))
        let body = sample.body
        for offset in [0, 1, 65535, 65536, 65537, 131_071, 131_072, 149_999] {
            let piece = try reader.piece(from: UInt64(offset))
            #expect(piece.count == min(65536 - offset % 65536, body.count - offset))
            #expect(Array(piece) == Array(body[offset..<offset + piece.count]))
            // Not every file system reports what it has in memory.
            if let cached = reader.cachedPiece(from: UInt64(offset)) { #expect(cached == piece) }
        }
        #expect(reader.cachedPiece(from: 150_000) == nil && reader.cachedPiece(from: .max) == nil)
        #expect(try reader.piece(from: 150_000).isEmpty)
        #expect(try reader.piece(from: .max).isEmpty)
    }

    @Test func nothingIsSeenBeforeACommitAndNothingStaysWithoutOne() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 200_000)
        do {
            var writer = try store.writer(sample.identity)
            try writer.append(sample.body)
            #expect(writer.length == 200_000)
            #expect(sample.record(in: store) == nil)
            #expect(bed.bodies.count == 1)
        }
        #expect(bed.bodies.isEmpty)
        #expect(store.status.bytes == 0)
    }

    @Test func theSameVariantIsReplaced() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let old = try Sample(number: 1, length: 100_000).store(in: store)
        let reader = try store.reader(of: old)
        let new = Sample(number: 1)
        try new.store(in: store)
        #expect(store.records(of: new.identity.key).count == 1)
        #expect(try new.read(from: store) == new.body)
        #expect(bed.bodies.count == 1)
        #expect(store.status.records == 1)
        // Only a reader that has the old body open reads it to its end.
        #expect(try reader.piece(from: 65536).count == 100_000 - 65536)
        #expect(throws: ReadingFailure.removed) { try Sample.read(old, from: store) }
        #expect(throws: StoringFailure.purged) { try store.update(old, head: [], metadata: []) }
    }

    @Test func aKeyHasSixteenVariantsAndTheLeastRecentlyUsedGoes() throws {
        let bed = StoreBed()
        let store = try bed.open()
        for variant in 0..<16 {
            try Sample(number: 1, variant: variant).store(in: store)
            bed.pass(60_000)
        }
        store.touch(try #require(Sample(number: 1, variant: 0).record(in: store)))
        bed.pass(60_000)
        try Sample(number: 1, variant: 16).store(in: store)
        let variants = store.records(of: Sample(number: 1).identity.key).map(\.identity.variant)
        #expect(variants.count == 16 && bed.bodies.count == 16)
        #expect(!variants.contains(Sample(number: 1, variant: 1).identity.variant))
        #expect(variants.contains(Sample(number: 1, variant: 0).identity.variant))
    }

    @Test func aRecordTakesAnotherHead() throws {
        let bed = StoreBed()
        let sample = Sample(number: 1)
        do {
            let store = try bed.open()
            let record = try sample.store(in: store)
            bed.pass(5000)
            let changed = try store.update(record, head: Array("another".utf8), metadata: Array("more".utf8))
            #expect(changed.head == Array("another".utf8))
            #expect(store.status.bytes < 16384)
            store.close()
        }
        let store = try bed.open()
        let record = try #require(sample.record(in: store))
        #expect(record.head == Array("another".utf8) && record.metadata == Array("more".utf8))
        #expect(record.lastUsed == record.stored + 5000)
        #expect(try sample.read(from: store) == sample.body)
    }

    @Test func usesAreWrittenTogetherAndAtTheEnd() throws {
        let bed = StoreBed()
        do {
            let store = try bed.open()
            let record = try Sample(number: 1).store(in: store)
            bed.pass(70_000)
            store.touch(record)
            #expect(Sample(number: 1).record(in: store)?.lastUsed == record.stored)
            store.close()
        }
        let record = try #require(Sample(number: 1).record(in: try bed.open()))
        #expect(record.lastUsed == record.stored + 70_000)
    }

    @Test func aUseSoonAfterAnotherIsNotNoted() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let stored = try Sample(number: 1).store(in: store).stored
        // Any store writes recorded uses.
        for (passing, noted) in [(59_999, 0), (1, 60_000), (10_000, 60_000), (-30_000, 40_000)] as [(Int64, Int64)] {
            bed.pass(passing)
            store.touch(try #require(Sample(number: 1).record(in: store)))
            try Sample(number: 2).store(in: store)
            #expect(Sample(number: 1).record(in: store)?.lastUsed == stored + noted)
        }
    }

    @Test func aHeadThatIsTooLongIsRefused() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let writer = try store.writer(Sample(number: 1).identity)
        let limit = StoringFailure.tooLarge(limit: 1 << 20)
        let head = [UInt8](repeating: 65, count: 1 << 20)
        var failure: (any Error)?
        do { _ = try writer.commit(head: head, metadata: []) } catch { failure = error }
        #expect(failure as? StoringFailure == limit)
        #expect(bed.bodies.isEmpty)
    }

    @Test func aClosedStoreStoresAndFindsNothing() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let record = try Sample(number: 1).store(in: store)
        store.close()
        #expect(store.records(of: record.identity.key).isEmpty)
        #expect(throws: StoringFailure.closed) { try Sample(number: 2).store(in: store) }
        #expect(throws: ReadingFailure.removed) { try Sample.read(record, from: store) }
        #expect(throws: StoringFailure.closed) { try store.purgeAll() }
    }
}
