import Glibc
import Testing

@testable import PinproxyLocalPeers

@Suite struct DirectoryEntryTests {
    /// The kernel's last entry may end with the process's memory, long before the structure would.
    @Test func aNameIsReadNoFurtherThanToItsEnd() throws {
        let page = Int(sysconf(CInt(_SC_PAGESIZE)))
        let memory = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        try #require(memory != MAP_FAILED)
        defer { munmap(memory, 2 * page) }
        try #require(mprotect(memory + page, page, PROT_NONE) == 0)
        let field = try #require(MemoryLayout<dirent>.offset(of: \.d_name))
        let entry = memory + page - 24
        (entry + field).copyMemory(from: Array("4711".utf8) + [0], byteCount: 5)
        #expect(entry.assumingMemoryBound(to: dirent.self).name == "4711")
    }
}
