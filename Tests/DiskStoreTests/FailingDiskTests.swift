import Foundation
import PinproxyDiskStore
import Testing

/// A full disk only stops storing, for a while.
@Suite(.enabled(if: SmallDisk.isPossible, "needs root and mount(2)")) struct FailingDiskTests {
    @Test func aFullDiskPausesStoring() throws {
        let disk = try SmallDisk(bytes: 2 << 20)
        try disk.fill(500_000)
        let store = try disk.bed.open(limit: 100 << 20)
        let kept = Sample(number: 0)
        try kept.store(in: store)
        var failures: [StoringFailure] = []
        for number in 1..<100 where failures.isEmpty {
            do {
                try Sample(number: number, length: 100_000).store(in: store)
            } catch let failure as StoringFailure {
                failures.append(failure)
            }
        }
        // The body or the index, whichever failed first.
        guard case .disk(let problem) = failures.first else {
            Issue.record("\(failures)")
            return
        }
        #expect(["write: No space left on device", "index: database or disk is full"].contains("\(problem)"))
        #expect(disk.bed.reported == [.paused(problem, seconds: 30)])
        // There is no second attempt for now; stored responses are served.
        let next = Sample(number: 500)
        let paused = StoringFailure.paused(problem)
        #expect(throws: paused) { try next.store(in: store) }
        #expect(throws: paused) {
            try store.update(try #require(kept.record(in: store)), head: [], metadata: [])
        }
        #expect(store.status.pause == "\(problem)")
        #expect(try kept.read(from: store) == kept.body)
        #expect(disk.bed.bodies.count == store.status.records)
        disk.empty()
        disk.bed.pass(29_999)
        #expect(throws: paused) { try next.store(in: store) }
        disk.bed.pass(1)
        try next.store(in: store)
        #expect(disk.bed.reported.last == .resumed && store.status.pause == nil)
        #expect(try next.read(from: store) == next.body)
    }

    /// Nothing can be written, not even the index's log.
    @Test(arguments: [false, true]) func aPurgeMakesRoomOnAFullDisk(_ all: Bool) throws {
        let disk = try SmallDisk(bytes: 2 << 20)
        let store = try disk.bed.open(limit: 100 << 20)
        for number in 0..<10 { try Sample(number: number, length: 100_000).store(in: store) }
        try disk.fill()
        #expect(throws: StoringFailure.self) { try Sample(number: 100, length: 100_000).store(in: store) }
        #expect(store.status.pause != nil)
        #expect(try Sample(number: 3, length: 100_000).read(from: store) == Sample(number: 3, length: 100_000).body)
        let purged = try all ? store.purgeAll() : store.purge(host: "host1.test")
        #expect(purged.records == (all ? 10 : 2))
        #expect(store.status.pause == nil && disk.bed.reported.last == .resumed)
        try Sample(number: 100, length: 100_000).store(in: store)
        #expect(store.status.records == (all ? 1 : 9) && disk.bed.bodies.count == store.status.records)
        store.close()
        #expect(try disk.bed.open().status.records == (all ? 1 : 9))
    }

    @Test func theIndexMayFailAnywhere() throws {
        let disk = try SmallDisk(bytes: 600_000)
        let store = try disk.bed.open(limit: 100 << 20)
        var (stored, failed) = (0, 0)
        // Rows fill the disk, not bodies.
        for number in 0..<400 {
            do {
                try Sample(number: number, length: 1).store(in: store)
                stored += 1
            } catch is StoringFailure {
                failed += 1
                disk.bed.pass(30_001)
            }
        }
        #expect(stored > 20 && failed > 20)
        for number in 0..<400 {
            if let body = try? Sample(number: number, length: 1).read(from: store) {
                #expect(body == Sample(number: number, length: 1).body)
            }
        }
        #expect(store.status.damaged == 0 && disk.bed.bodies.isEmpty)
        #expect(!disk.bed.reported.contains { if case .begunAnew = $0 { true } else { false } })
        // The old index's space is free only once nobody holds a copy of it. A purge fails until then, and works after.
        let full = "\(disk.bed.directory): index: database or disk is full"
        let held = ["index.sqlite", "index.sqlite-wal"].map {
            open("\(disk.bed.directory)/\($0)", O_RDONLY | O_CLOEXEC)
        }
        let failure = #expect(throws: StoringFailure.self) { try store.purgeAll() }
        #expect(failure.map { "\($0)" } == full)
        for descriptor in held { close(descriptor) }
        // A process that another test starts has copies too, until it executes its program. No other error is excused.
        for _ in 0..<1000 {
            do {
                try store.purgeAll()
                break
            } catch {
                try #require("\(error)" == full)
                usleep(10_000)
            }
        }
        try Sample(number: 1000).store(in: store)
    }

    @Test func aStoreOnAFullDiskIsAnError() throws {
        let disk = try SmallDisk(bytes: 64 << 10)
        try disk.fill()
        #expect(throws: DirectoryRefusal.self) { try disk.bed.open() }
    }

    @Test func aClockThatIsSetBackEndsAPause() throws {
        let disk = try SmallDisk(bytes: 1 << 20)
        let store = try disk.bed.open()
        try disk.fill()
        #expect(throws: StoringFailure.self) { try Sample(number: 1, length: 100_000).store(in: store) }
        disk.empty()
        #expect(throws: StoringFailure.self) { try Sample(number: 1).store(in: store) }
        disk.bed.pass(-86_400_000)
        try Sample(number: 1).store(in: store)
    }
}

/// A small tmpfs in place of a bed's directory.
private final class SmallDisk {
    static let isPossible = geteuid() == 0 && (try? SmallDisk(bytes: 4096)) != nil

    struct Failure: Error {
        let code: CInt
    }

    let bed = StoreBed()

    init(bytes: Int) throws {
        mkdir(bed.directory, 0o700)
        guard mount("tmpfs", bed.directory, "tmpfs", 0, "size=\(bytes),mode=0700") == 0 else {
            throw Failure(code: errno)
        }
    }

    // Open files don't keep it mounted.
    deinit { umount2(bed.directory, CInt(MNT_DETACH)) }

    private var filler: String { bed.directory + "/filler" }

    /// - Parameter limit: in bytes; by default everything that fits.
    func fill(_ limit: Int = .max) throws {
        let raw = open(filler, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        guard raw >= 0 else { throw Failure(code: errno) }
        defer { close(raw) }
        let page = [UInt8](repeating: 0, count: 4096)
        var count = 0
        while count < limit, write(raw, page, page.count) > 0 { count += page.count }
    }

    func empty() { unlink(filler) }
}
