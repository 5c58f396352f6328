import Foundation
import Glibc
import Testing

@testable import PinproxyLocalPeers

@Suite struct MappedFilesTests {
    @Test func codeThatWasReplacedIsFound() {
        let maps = """
            55d0c7a00000-55d0c7a02000 r--p 00000000 fe:00 123 /usr/bin/pinproxy
            55d0c7a02000-55d0c7a04000 r-xp 00002000 fe:00 123 /usr/bin/pinproxy (deleted)
            7f1c40000000-7f1c40021000 r--p 00000000 fe:00 456                        \
            /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)
            7f1c40021000-7f1c40041000 r-xp 00021000 fe:00 456                        \
            /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)
            7f1c40041000-7f1c40051000 r-xp 00041000 fe:00 456                        \
            /usr/lib/x86_64-linux-gnu/libssl.so.3 (deleted)
            7f1c40100000-7f1c40121000 r-xp 00000000 fe:00 457                        /usr/lib/x86_64-linux-gnu/libc.so.6
            7f1c40200000-7f1c40221000 rw-s 00000000 00:01 789                        /dev/zero (deleted)
            7f1c40300000-7f1c40321000 r-xp 00000000 00:01 790                        /memfd:code (deleted)
            7f1c40400000-7f1c40421000 r-xp 00000000 fe:00 791                        /opt/a folder/lib x.so (deleted)
            7ffc5b5f0000-7ffc5b5f2000 r-xp 00000000 00:00 0                          [vdso]
            7f1c40500000-7f1c40521000 r-xp 00000000 (deleted)
            """
        #expect(
            MappedFiles.replaced(in: maps) == [
                "/opt/a folder/lib x.so", "/usr/bin/pinproxy", "/usr/lib/x86_64-linux-gnu/libssl.so.3",
            ])
        #expect(MappedFiles.replaced(in: "") == [])
        for count in 0..<maps.utf8.count { _ = MappedFiles.replaced(in: String(maps.prefix(count))) }
    }

    /// A library loaded by this process, replaced as dpkg replaces it.
    @Test func aLibraryOfThisProcessIsFound() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "pinproxy-mapped-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let installed = try #require(
            ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"].map { $0 + "/libyaml-0.so.2" }.first {
                FileManager.default.fileExists(atPath: $0)
            })
        let library = folder.appendingPathComponent("libown.so").path
        try FileManager.default.copyItem(
            atPath: URL(fileURLWithPath: installed).resolvingSymlinksInPath().path, toPath: library)
        let handle = try #require(dlopen(library, RTLD_NOW | RTLD_LOCAL))
        defer { dlclose(handle) }
        #expect(!MappedFiles.replaced().contains(library))
        try FileManager.default.copyItem(atPath: library, toPath: library + ".new")
        #expect(rename(library + ".new", library) == 0)
        #expect(MappedFiles.replaced().contains(library))
    }
}
