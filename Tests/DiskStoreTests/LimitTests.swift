import Foundation
import PinproxyDiskStore
import Testing

/// The store stays below its limit.
@Suite struct LimitTests {
    @Test func theLeastRecentlyUsedGoDownToSixtyPercent() throws {
        let bed = StoreBed()
        let limit: UInt64 = 4 << 20
        let store = try bed.open(limit: limit)
        var number = 0
        while !bed.reported.contains(where: { if case .evicted = $0 { true } else { false } }) {
            bed.pass(60_000)
            try Sample(number: number, length: 50_000).store(in: store)
            // The first one stays in use.
            if let first = Sample(number: 0).record(in: store) { store.touch(first) }
            #expect(store.status.bytes <= limit)
            number += 1
            try #require(number < 1000)
        }
        let status = store.status
        #expect(status.bytes > limit / 100 * 50 && status.bytes <= limit / 100 * 62)
        #expect(status.evicted + status.records == number)
        #expect(bed.bodies.count == status.records)
        let kept = (0..<number).filter { Sample(number: $0).record(in: store) != nil }
        #expect(kept == [0] + Array(number - status.records + 1..<number))
        guard case .evicted(let records, let bytes) = bed.reported.last else { return }
        #expect(records == status.evicted && bytes > limit / 100 * 35)
    }

    @Test func aLowerLimitHoldsFromTheStart() throws {
        let bed = StoreBed()
        do {
            let store = try bed.open()
            for number in 0..<20 {
                bed.pass(1000)
                try Sample(number: number, length: 40_000).store(in: store)
            }
            store.close()
        }
        let store = try bed.open(limit: 400_000)
        #expect(store.status.bytes <= 240_000 && store.status.records > 3)
        #expect(Sample(number: 19).record(in: store) != nil && Sample(number: 0).record(in: store) == nil)
        #expect(bed.bodies.count == store.status.records)
    }

    @Test func fivePercentIsTheLargestBody() throws {
        let bed = StoreBed()
        let store = try bed.open(limit: 2_000_000)
        var writer = try store.writer(Sample(number: 1).identity)
        try writer.append([UInt8](repeating: 1, count: 99_999))
        try writer.append([2])
        var failures: [StoringFailure] = []
        for _ in 0..<2 {
            do throws(StoringFailure) { try writer.append([3]) } catch { failures.append(error) }
        }
        do throws(StoringFailure) { _ = try writer.commit(head: [], metadata: []) } catch { failures.append(error) }
        #expect(failures == [StoringFailure](repeating: .tooLarge(limit: 100_000), count: 3))
        #expect(bed.bodies.isEmpty && store.status.bytes == 0)
        try Sample(number: 1, length: 100_000).store(in: store)
        #expect(try Sample(number: 1, length: 100_000).read(from: store)?.count == 100_000)
    }

    @Test func bodiesBeingWrittenCount() throws {
        let bed = StoreBed()
        // Each may have 65,536 bytes: one piece.
        let store = try bed.open(limit: 65536 * 20)
        try Sample(number: 100, length: 60_000).store(in: store)
        var writers = try (0..<20).map { Kept(try store.writer(Sample(number: $0).identity)) }
        let body = Sample(number: 1, length: 65536).body
        for writer in writers { try writer.append(body) }
        // Everything stored was evicted for them.
        #expect(store.status.records == 0)
        #expect(throws: StoringFailure.noRoom) { try Sample(number: 101).store(in: store) }
        #expect(throws: StoringFailure.noRoom) { try writers[0].commit() }
        writers = []
        #expect(bed.bodies.isEmpty)
        try Sample(number: 101).store(in: store)
    }

    /// Small bodies fill an index, then large ones replace them: the index's pages are freed.
    @Test func theDirectoryIsBounded() throws {
        let bed = StoreBed()
        let limit: UInt64 = 2 << 20
        let store = try bed.open(limit: limit)
        for number in 0..<5000 { try Sample(number: number, length: 10).store(in: store) }
        #expect(store.status.evicted > 0)
        for number in 0..<100 { try Sample(number: 9000 + number, length: 100_000).store(in: store) }
        // The index's log comes on top.
        #expect(bed.size < limit + 8 << 20)
        store.close()
        #expect(bed.size < limit, "\(bed.size)")
    }

    // MARK: Purging

    @Test func aHostAURLAndAKeyArePurged() throws {
        let bed = StoreBed()
        let store = try bed.open()
        for number in 0..<28 { try Sample(number: number).store(in: store) }
        try Sample(number: 7, variant: 1).store(in: store)
        let before = store.status.bytes
        let host = try store.purge(host: "host3.test")
        #expect(host.records == 4 && store.status.bytes == before - host.bytes)
        #expect(try store.purge(host: "host3.test").records == 0)
        #expect(try store.purge(url: "https://host0.test/7").records == 2)
        #expect(try store.purge(url: "https://host0.test/").records == 0)
        #expect(try store.purge(key: Sample(number: 8).identity.key).records == 1)
        let kept = (0..<28).filter { Sample(number: $0).record(in: store) != nil }
        #expect(kept == (0..<28).filter { $0 % 7 != 3 && $0 != 7 && $0 != 8 })
        #expect(store.status.records == kept.count && bed.bodies.count == kept.count)
        let all = try store.purgeAll()
        #expect(all.records == kept.count && store.status.records == 0 && store.status.bytes == 0)
        #expect(bed.bodies.isEmpty)
        try Sample(number: 1).store(in: store)
        #expect(try Sample(number: 1).read(from: store) == Sample(number: 1).body)
    }

    @Test(arguments: ["host", "url", "key", "all"]) func whatIsBeingWrittenIsPurgedToo(_ what: String) throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 100_000)
        let writer = Kept(try store.writer(sample.identity))
        let other = Kept(try store.writer(Sample(number: 2).identity))
        try writer.append(sample.body)
        switch what {
        case "host": try store.purge(host: sample.identity.host)
        case "url": try store.purge(url: sample.identity.url)
        case "key": try store.purge(key: sample.identity.key)
        default: try store.purgeAll()
        }
        #expect(throws: StoringFailure.purged) { try writer.commit() }
        #expect(sample.record(in: store) == nil)
        if what == "all" {
            #expect(throws: StoringFailure.purged) { try other.commit() }
        } else {
            try other.commit()
        }
        #expect(bed.bodies.isEmpty && store.status.records == (what == "all" ? 0 : 1))
    }

    @Test func whatIsStoredIsShown() throws {
        let bed = StoreBed()
        let store = try bed.open()
        for number in 0..<14 { try Sample(number: number, length: number % 7 * 10_000).store(in: store) }
        try Sample(number: 6, variant: 1).store(in: store)
        let hosts = try store.topHosts(3)
        #expect(hosts.map(\.host) == ["host6.test", "host5.test", "host4.test"])
        #expect(hosts.map(\.records) == [3, 2, 2])
        #expect(try store.topHosts(100).reduce(0) { $0 + $1.bytes } == store.status.bytes)
        let records = try store.records(url: "https://host6.test/6")
        #expect(records.map(\.identity.variant) == [Array("variant 0".utf8), Array("variant 1".utf8)])
        #expect(try store.records(url: "https://host6.test/7").isEmpty)
    }

    @Test func aRecordIsRemoved() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let record = try Sample(number: 1).store(in: store)
        try store.remove(record)
        try store.remove(record)
        #expect(store.status.records == 0 && store.status.bytes == 0 && bed.bodies.isEmpty)
        #expect(throws: ReadingFailure.removed) { try Sample.read(record, from: store) }
    }
}
