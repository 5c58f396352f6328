import Foundation
import PinproxyDiskStore
import Testing

/// Which directories are accepted, and what happens to one that was changed.
@Suite struct DirectoryTests {
    @Test func twoStoresCannotShareADirectory() throws {
        let bed = StoreBed()
        let first = try bed.open()
        #expect(throws: DirectoryRefusal.inUse(path: bed.directory)) { try bed.open() }
        try Sample(number: 1).store(in: first)
        first.close()
        #expect(try Sample(number: 1).read(from: try bed.open()) == Sample(number: 1).body)
    }

    /// A child has a copy between fork and exec.
    @Test func aCopyOfItsDescriptorKeepsNobodyOut() throws {
        let bed = StoreBed()
        let first = try bed.open()
        let files = FileManager.default
        let copies = try files.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name -> CInt? in
            let target = try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
            return target == bed.directory ? CInt(name).map { dup($0) } : nil
        }
        defer { for copy in copies { close(copy) } }
        #expect(!copies.isEmpty)
        first.close()
        try bed.open().close()
    }

    @Test func aDirectoryThatOthersCanWriteToIsRefused() throws {
        let bed = StoreBed()
        mkdir(bed.directory, 0o700)
        for mode in [0o770, 0o702, 0o1777] as [mode_t] {
            chmod(bed.directory, mode)
            let text = "others can write to it (mode \(String(mode, radix: 8)))"
            #expect(throws: DirectoryRefusal.untrusted(path: bed.directory, text)) { try bed.open() }
        }
        chmod(bed.directory, 0o755)
        _ = try bed.open()
        var status = stat()
        #expect(stat(bed.directory, &status) == 0 && status.st_mode & 0o777 == 0o700)
    }

    @Test(.enabled(if: geteuid() == 0)) func aDirectoryOfAnotherUserIsRefused() throws {
        let bed = StoreBed()
        mkdir(bed.directory, 0o700)
        chown(bed.directory, 12345, 12345)
        let text = "it belongs to user 12345, and this runs as user 0"
        #expect(throws: DirectoryRefusal.untrusted(path: bed.directory, text)) { try bed.open() }
        #expect(StoreBed.size(bed.directory) == 0)
    }

    @Test func linksAndFilesInItsPlaceAreRefused() throws {
        let bed = StoreBed()
        let target = bed.folder.path + "/target"
        mkdir(target, 0o700)
        symlink(target, bed.directory)
        var refusal = DirectoryRefusal.untrusted(path: bed.directory, "a symbolic link, which isn't followed")
        #expect(throws: refusal) { try bed.open() }
        unlink(bed.directory)
        write(Data("mine".utf8), to: bed.directory)
        refusal = .untrusted(path: bed.directory, "not a directory")
        #expect(throws: refusal) { try bed.open() }
        #expect(FileManager.default.contents(atPath: bed.directory) == Data("mine".utf8))
        unlink(bed.directory)
        mkdir(bed.directory, 0o700)
        symlink(target, bed.directory + "/bodies")
        refusal = .untrusted(path: bed.directory + "/bodies", "a symbolic link, which isn't followed")
        #expect(throws: refusal) { try bed.open() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: target).isEmpty)
    }

    @Test func aMissingParentIsAnError() throws {
        #expect(throws: DirectoryRefusal.disk(path: "/nowhere/cache", .system("mkdir", ENOENT))) {
            try DiskStore(directory: "/nowhere/cache", limit: 1 << 20)
        }
    }

    @Test func anIndexThatIsALinkIsNotFollowed() throws {
        let bed = StoreBed()
        mkdir(bed.directory, 0o700)
        let target = bed.folder.path + "/target"
        write(Data("mine".utf8), to: target)
        symlink(target, bed.directory + "/index.sqlite")
        let store = try bed.open()
        try Sample(number: 1).store(in: store)
        #expect(try Sample(number: 1).read(from: store) == Sample(number: 1).body)
        #expect(FileManager.default.contents(atPath: target) == Data("mine".utf8))
    }

    // MARK: Existing contents

    @Test func whatIsNotAnIndexIsSetAsideAndBegunAnew() throws {
        let bed = StoreBed()
        mkdir(bed.directory, 0o700)
        let index = bed.directory + "/index.sqlite"
        let bytes = Data((0..<20000).map { UInt8(truncatingIfNeeded: $0 &* 37) })
        write(bytes, to: index)
        let aside = bed.directory + "/index.damaged"
        do {
            let store = try bed.open()
            let anew = DiskStoreEvent.begunAnew(reason: "index: file is not a database", setAside: aside)
            #expect(bed.reported == [anew])
            #expect(FileManager.default.contents(atPath: aside) == bytes)
            try Sample(number: 1).store(in: store)
            store.close()
        }
        // The next start finds an intact one.
        let store = try bed.open()
        #expect(try Sample(number: 1).read(from: store) == Sample(number: 1).body)
        #expect(!FileManager.default.fileExists(atPath: aside))
    }

    @Test(arguments: [
        ("PRAGMA application_id=7", "not the index of a cache"),
        ("PRAGMA user_version=1", "version 1 of the index, not 2"),
        ("PRAGMA user_version=3", "version 3 of the index, not 2"),
        ("DROP INDEX by_key", "other tables than a cache has"),
        ("CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END", "other tables than a cache has"),
    ]) func aForeignIndexIsBegunAnew(_ sql: String, _ reason: String) throws {
        let bed = StoreBed()
        do {
            let store = try bed.open()
            try Sample(number: 1).store(in: store)
            store.close()
        }
        try Database.execute(sql, bed.directory + "/index.sqlite")
        let store = try bed.open()
        let aside = bed.directory + "/index.damaged"
        #expect(bed.reported == [.begunAnew(reason: reason, setAside: aside), .swept(bodies: 1, rows: 0)])
        #expect(Sample(number: 1).record(in: store) == nil)
        #expect(bed.bodies.isEmpty)
    }

    @Test func bodiesWithoutARowAndRowsWithoutABodyAreRemoved() throws {
        let bed = StoreBed()
        do {
            let store = try bed.open()
            for number in 0..<4 { try Sample(number: number).store(in: store) }
            store.close()
        }
        let names = bed.bodies.sorted()
        #expect(names == ["1", "2", "3", "4"])
        unlink("\(bed.directory)/bodies/2")
        for name in ["7", "stranger", "0x1", "-1", "01"] {
            write(Data(count: 9), to: "\(bed.directory)/bodies/\(name)")
        }
        mkdir("\(bed.directory)/bodies/folder", 0o700)
        let store = try bed.open()
        #expect(bed.reported == [.swept(bodies: 6, rows: 1)])
        #expect(bed.bodies.sorted() == ["1", "3", "4"])
        #expect(store.status.records == 3)
        for number in [0, 2, 3] { #expect(try Sample(number: number).read(from: store) == Sample(number: number).body) }
        // Numbers aren't reused.
        try Sample(number: 9).store(in: store)
        #expect(bed.bodies.sorted() == ["1", "3", "4", "8"])
    }

    // MARK: Deleted while in use

    @Test func theDirectoryIsMadeAnew() throws {
        let bed = StoreBed()
        let store = try bed.open()
        let sample = Sample(number: 1, length: 100_000)
        let reader = try store.reader(of: try sample.store(in: store))
        var writer = try store.writer(Sample(number: 2).identity)
        try writer.append(sample.body)
        try FileManager.default.removeItem(atPath: bed.directory)
        // Open readers continue; others miss.
        #expect(try reader.piece(from: 65536).count == 100_000 - 65536)
        #expect(throws: ReadingFailure.removed) { try sample.read(from: store) }
        var failure: (any Error)?
        do { _ = try writer.commit(head: [], metadata: []) } catch { failure = error }
        #expect(failure as? StoringFailure == .purged)
        try sample.store(in: store)
        #expect(try sample.read(from: store) == sample.body)
        #expect(bed.reported.contains(.reopened(reason: "\(bed.directory) was deleted or replaced")))
        #expect(store.status.records == 1 && bed.bodies.count == 1)
        store.close()
        #expect(try sample.read(from: try bed.open()) == sample.body)
    }

    @Test(arguments: ["index.sqlite", "index.sqlite-wal", "bodies"]) func whatWasDeletedIsMadeAnew(
        _ name: String
    ) throws {
        let bed = StoreBed()
        let store = try bed.open()
        try Sample(number: 1).store(in: store)
        try FileManager.default.removeItem(atPath: "\(bed.directory)/\(name)")
        try Sample(number: 2).store(in: store)
        #expect(try Sample(number: 2).read(from: store) == Sample(number: 2).body)
        // Lost records are misses. The log's rows are still in memory, and survive.
        let isKept = name == "index.sqlite-wal"
        #expect(try Sample(number: 1).read(from: store) == (isKept ? Sample(number: 1).body : nil))
        #expect(bed.bodies.count == (isKept ? 2 : 1))
        store.close()
        #expect(try Sample(number: 2).read(from: try bed.open()) == Sample(number: 2).body)
    }

    @Test func aDirectoryThatCannotBeMadeAnewIsSaid() throws {
        let bed = StoreBed()
        let store = try bed.open()
        try FileManager.default.removeItem(atPath: bed.directory)
        write(Data(), to: bed.directory)
        let refusal = DirectoryRefusal.untrusted(path: bed.directory, "not a directory")
        #expect(throws: StoringFailure.refused(refusal)) { try Sample(number: 1).store(in: store) }
        #expect(store.status.pause == "\(bed.directory): not a directory")
        #expect(store.records(of: Sample(number: 1).identity.key).isEmpty)
        // What can't be reached isn't purged, and may come back later.
        #expect(throws: StoringFailure.refused(refusal)) { try store.purge(host: "host1.test") }
        #expect(throws: StoringFailure.refused(refusal)) { try store.purge(key: Sample(number: 1).identity.key) }
        #expect(throws: StoringFailure.refused(refusal)) { try store.purgeAll() }
        unlink(bed.directory)
        try Sample(number: 1).store(in: store)
        #expect(store.status.pause == nil)
    }

    private func write(_ bytes: Data, to path: String) {
        let isWritten = FileManager.default.createFile(
            atPath: path, contents: bytes, attributes: [.posixPermissions: 0o600])
        #expect(isWritten, "\(path)")
    }
}
