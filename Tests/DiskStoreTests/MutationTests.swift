import Foundation
import PinproxyDiskStore
import Synchronization
import Testing

/// No changed byte is ever served: a changed record is a miss, and the store keeps working.
@Suite struct MutationTests {
    // MARK: Bodies

    /// A body without a file is a part of the index, below.
    @Test func everyByteOfABodyIsVerified() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 8200)
        for place in stride(from: 0, to: 8200, by: 41) {
            let record = try sample.store(in: store)
            let name = try #require(bed.bodies.first)
            let reader = try store.reader(of: record)
            try Self.flip(place, of: "\(bed.directory)/bodies/\(name)")
            let damage = ReadingFailure.damaged("its file was changed near byte 0")
            #expect(throws: damage) { try reader.piece(from: 0) }
            #expect(sample.record(in: store) == nil && bed.bodies.isEmpty)
        }
        #expect(store.status.damaged == 200 && store.status.bytes == 0)
        #expect(bed.reported.count == 200)
    }

    @Test func onlyTheChangedPieceIsRefused() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 200_000)
        let reader = try store.reader(of: try sample.store(in: store))
        try Self.flip(140_000, of: "\(bed.directory)/bodies/\(try #require(bed.bodies.first))")
        for start in [0, 65536, 196_608] {
            #expect(Array(try reader.piece(from: UInt64(start))) == Array(sample.body[start...].prefix(65536)))
        }
        #expect(reader.cachedPiece(from: 150_000) == nil)
        #expect(throws: ReadingFailure.damaged("its file was changed near byte 131072")) {
            try reader.piece(from: 150_000)
        }
        #expect(sample.record(in: store) == nil)
    }

    @Test(arguments: [0, 1, 99_999, 100_001]) func aBodyOfAnotherLengthIsRefused(_ length: Int) throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 100_000)
        let reader = try store.reader(of: try sample.store(in: store))
        truncate("\(bed.directory)/bodies/\(try #require(bed.bodies.first))", length)
        // An open body is verified as it is read.
        if length < 100_000 {
            #expect(throws: ReadingFailure.damaged("its file was changed near byte 65536")) {
                try reader.piece(from: 65536)
            }
            #expect(sample.record(in: store) == nil)
        } else {
            #expect(throws: ReadingFailure.damaged("its file is missing or cut")) { try sample.read(from: store) }
        }
        #expect(bed.bodies.isEmpty)
    }

    @Test func swappedPiecesAreRefused() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 200_000)
        let reader = try store.reader(of: try sample.store(in: store))
        let path = "\(bed.directory)/bodies/\(try #require(bed.bodies.first))"
        var bytes = try Data(contentsOf: URL(filePath: path))
        let piece = bytes[65536..<131_072]
        bytes.replaceSubrange(65536..<131_072, with: bytes[131_072..<196_608])
        bytes.replaceSubrange(131_072..<196_608, with: piece)
        let raw = open(path, O_WRONLY)
        defer { close(raw) }
        try #require(bytes.withUnsafeBytes { pwrite(raw, $0.baseAddress, $0.count, 0) } == 200_000)
        for start in [65536, 131_072] {
            #expect(throws: ReadingFailure.damaged("its file was changed near byte \(start)")) {
                try reader.piece(from: UInt64(start))
            }
        }
        for start in [0, 196_608] {
            #expect(Array(try reader.piece(from: UInt64(start))) == Array(sample.body[start...].prefix(65536)))
        }
    }

    @Test func swappedBodiesAreRefused() throws {
        let bed = StoreBed()
        let store = try bed.open()
        for number in 0..<2 { try Sample(number: number).store(in: store) }
        let bodies = bed.directory + "/bodies"
        for (old, new) in [("1", "x"), ("2", "1"), ("x", "2")] { rename("\(bodies)/\(old)", "\(bodies)/\(new)") }
        for number in 0..<2 {
            #expect(throws: ReadingFailure.damaged("its file was changed near byte 0")) {
                try Sample(number: number).read(from: store)
            }
        }
        #expect(store.status.records == 0)
    }

    /// After a restart a removed record's number is reused.
    @Test func anOldBodyOfTheSameNumberIsRefused() throws {
        let bed = StoreBed()
        let (path, copy) = (bed.directory + "/bodies/1", bed.folder.path + "/copy")
        do {
            let store = try bed.open()
            let record = try Sample(number: 1).store(in: store)
            try FileManager.default.copyItem(atPath: path, toPath: copy)
            try store.remove(record)
            store.close()
        }
        let store = try bed.open()
        try Sample(number: 2).store(in: store)
        #expect(bed.bodies == ["1"])
        rename(copy, path)
        #expect(throws: ReadingFailure.damaged("its file was changed near byte 0")) {
            try Sample(number: 2).read(from: store)
        }
        #expect(store.status.records == 0)
    }

    @Test func aPipeOrALinkInPlaceOfABodyIsRefused() throws {
        let bed = StoreBed()
        let store = try bed.open()
        for number in 0..<2 { try Sample(number: number).store(in: store) }
        let bodies = bed.directory + "/bodies"
        rename("\(bodies)/1", bed.folder.path + "/target")
        symlink(bed.folder.path + "/target", "\(bodies)/1")
        unlink("\(bodies)/2")
        mkfifo("\(bodies)/2", 0o600)
        for number in 0..<2 {
            #expect(throws: ReadingFailure.damaged("its file is missing or cut")) {
                try Sample(number: number).read(from: store)
            }
        }
        #expect(bed.bodies.isEmpty)
    }

    // MARK: Rows

    @Test(arguments: [
        "id = 9", "size = size - 1", "stored = stored + 1", "length = length - 1", "length = -1",
        "length = 9223372036854775807", "host = 'other.test'", "url = url || '/'", "variant = X'00'", "owner = X''",
        "head = X''", "metadata = head", "body = digest", "digest = body", "pieces = body", "pieces = X''",
        "key = (SELECT key FROM records WHERE id = 2)", "pieces = (SELECT pieces FROM records WHERE id = 2)",
        "(body, pieces) = (SELECT body, pieces FROM records WHERE id = 2)",
        "pieces = CAST(X'00' || substr(pieces, 2) AS BLOB)",
    ]) func aChangedRowIsNotBelieved(_ change: String) throws {
        let bed = StoreBed()
        do {
            let store = try bed.open()
            for number in 1...2 { try Sample(number: number).store(in: store) }
            store.close()
        }
        try Database.execute("UPDATE records SET \(change) WHERE id = 1", bed.directory + "/index.sqlite")
        let store = try bed.open()
        for number in 1...2 {
            let body = try? Sample(number: number).read(from: store)
            #expect(body == (number == 1 ? nil : Sample(number: 2).body))
        }
        #expect(store.status.records == 1 && bed.bodies == ["2"])
        try Sample(number: 1).store(in: store)
        #expect(try Sample(number: 1).read(from: store) == Sample(number: 1).body)
    }

    @Test(arguments: [
        "id", "key, host, url, variant", "head, metadata", "content", "pieces", "content, pieces",
        "content, pieces, body",
    ]) func swappedRowsAreNotBelieved(_ columns: String) throws {
        let bed = StoreBed()
        do {
            let store = try bed.open()
            for number in 1...2 { try Sample(number: number, length: 100).store(in: store) }
            store.close()
        }
        let swap =
            columns == "id"
            ? "UPDATE records SET id = -id; UPDATE records SET id = 3 + id"
            : """
            CREATE TEMP TABLE others AS SELECT * FROM records; UPDATE records SET (\(columns)) = \
            (SELECT \(columns) FROM others WHERE others.id = 3 - records.id)
            """
        try Database.execute(swap, bed.directory + "/index.sqlite")
        let store = try bed.open()
        for number in 1...2 { #expect((try? Sample(number: number, length: 100).read(from: store)) == nil) }
        #expect(store.status.records == 0 && store.status.damaged == 2)
    }

    @Test(arguments: [
        "content = X'00'", "content = zeroblob(100)", "content = CAST(content || X'00' AS BLOB)", "length = 99",
    ])
    func aChangedBodyInARowIsNotServed(_ change: String) throws {
        let bed = StoreBed()
        let sample = Sample(number: 1, length: 100)
        do {
            let store = try bed.open()
            try sample.store(in: store)
            #expect(bed.bodies.isEmpty)
            store.close()
        }
        try Database.execute("UPDATE records SET \(change)", bed.directory + "/index.sqlite")
        let store = try bed.open()
        #expect((try? sample.read(from: store)) == nil)
        #expect(store.status.records == 0 && store.status.damaged == 1)
    }

    /// Each byte of the index's pages except empty space, then of its log's headers, and many others.
    @Test(arguments: ["index.sqlite", "index.sqlite-wal"]) func everyByteOfTheIndexMayChange(_ name: String) throws {
        let bed = StoreBed(inMemory: true)
        let model = try Self.model(bed, closed: name == "index.sqlite")
        let bytes = [UInt8](try #require(model[name]))
        let places = bytes.indices.filter {
            name == "index.sqlite" ? bytes[$0] != 0 || $0 % 19 == 0 : $0 < 32 || ($0 - 32) % 4120 < 24 || $0 % 53 == 0
        }
        #expect(places.count > 1000)
        let kept = Atomic(0)
        let anew = Atomic(0)
        let failure = Mutex<(any Error)?>(nil)
        let lanes = 4
        DispatchQueue.concurrentPerform(iterations: lanes) { lane in
            do {
                let bed = StoreBed(inMemory: true)
                for place in stride(from: lane, to: places.count, by: lanes).map({ places[$0] }) {
                    var files = model
                    files[name]?[place] ^= place % 2 == 0 ? 0xFF : 1 << UInt8(place / 2 % 8)
                    let found = try Self.survives(files, bed)
                    if found > 0 { kept.add(found, ordering: .relaxed) } else { anew.add(1, ordering: .relaxed) }
                }
            } catch {
                failure.withLock { $0 = error }
            }
        }
        if let error = failure.withLock({ $0 }) { throw error }
        // Both happened, so the trial is effective.
        #expect(kept.load(ordering: .relaxed) > places.count / 2 && anew.load(ordering: .relaxed) > 100)
    }

    private static func sample(_ number: Int) -> Sample { Sample(number: number, length: number == 1 ? 9000 : 100) }

    /// The files of a store with three records. One of the bodies has a file.
    private static func model(_ bed: StoreBed, closed: Bool) throws -> [String: Data] {
        let store = try bed.open()
        for number in 0..<3 { try sample(number).store(in: store) }
        if closed { store.close() }
        let names = ["index.sqlite", "index.sqlite-wal"] + bed.bodies.map { "bodies/\($0)" }
        return names.reduce(into: [:]) { $0[$1] = FileManager.default.contents(atPath: "\(bed.directory)/\($1)") }
    }

    /// A store opened with these files serves what was stored, or nothing, and can store.
    /// - Returns: how many records it has kept.
    private static func survives(_ files: [String: Data], _ bed: StoreBed) throws -> Int {
        mkdir(bed.directory, 0o700)
        mkdir(bed.directory + "/bodies", 0o700)
        for (name, bytes) in files {
            let path = "\(bed.directory)/\(name)"
            #expect(
                FileManager.default.createFile(atPath: path, contents: bytes, attributes: [.posixPermissions: 0o600]))
        }
        let store = try bed.open()
        var kept = 0
        for number in 0..<3 {
            let sample = sample(number)
            for record in store.records(of: sample.identity.key) {
                #expect(record.identity == sample.identity)
                #expect(record.head == sample.head && record.metadata == sample.metadata)
                if let body = try? Sample.read(record, from: store) {
                    #expect(body == sample.body)
                    kept += 1
                }
            }
        }
        _ = try? store.topHosts(10)
        _ = try? store.purge(host: "nowhere.test")
        // Whatever it detected meanwhile, it works again.
        let sample = Sample(number: 9, length: 100)
        if (try? sample.store(in: store)) == nil { try sample.store(in: store) }
        #expect(try sample.read(from: store) == sample.body)
        store.close()
        try FileManager.default.removeItem(atPath: bed.directory)
        return kept
    }

    private static func flip(_ place: Int, of path: String) throws {
        let raw = open(path, O_RDWR)
        defer { close(raw) }
        var byte: UInt8 = 0
        try #require(pread(raw, &byte, 1, off_t(place)) == 1)
        byte ^= 0x40
        try #require(pwrite(raw, &byte, 1, off_t(place)) == 1)
    }
}
