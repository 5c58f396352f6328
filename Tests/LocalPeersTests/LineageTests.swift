import Foundation
import Testing

@testable import PinproxyLocalPeers

@Suite struct LineageTests {
    /// Passes a socket of this process, which children inherit, and its inode.
    private func withSocket(_ body: (CInt, UInt64) throws -> Void) throws {
        let raw = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(raw) }
        var status = stat()
        try #require(fstat(raw, &status) == 0)
        try body(raw, UInt64(status.st_ino))
    }

    @Test func aSocketOfThisProcess() throws {
        try withSocket { _, inode in
            #expect(Lineage.sockets(among: [inode, 1]) == [inode])
            #expect(Lineage.sockets(among: []) == [])
        }
    }

    /// This process has closed its own copy.
    @Test func aSocketOfADescendant() throws {
        try withSocket { raw, inode in
            let child = Process()
            child.executableURL = URL(fileURLWithPath: "/bin/sh")
            child.arguments = ["-c", "sh -c 'echo; exec sleep 1000'; :"]
            let output = Pipe()
            child.standardOutput = output
            child.standardInput = FileHandle(fileDescriptor: raw, closeOnDealloc: false)
            try child.run()
            defer {
                for id in Lineage.descendants(of: child.processIdentifier) ?? [] { kill(id, SIGKILL) }
                child.terminate()
                child.waitUntilExit()
            }
            _ = output.fileHandleForReading.availableData
            #expect(Lineage.descendants(of: getpid())?.contains(child.processIdentifier) == true)
            let grandchildren = try #require(Lineage.descendants(of: child.processIdentifier))
            #expect(grandchildren.count == 1)
            let null = open("/dev/null", O_RDONLY | O_CLOEXEC)
            dup2(null, raw)
            close(null)
            #expect(Lineage.sockets(among: [inode]) == [inode])
        }
    }

    /// Process 1 is not a descendant of this process.
    @Test func othersAreNotOfTheFamily() throws {
        #expect(Lineage.descendants(of: getpid())?.contains(1) == false)
        #expect(Lineage.descendants(of: Int32.max) == nil)
    }

    @Test func theNameOfAProgramMayHoldAnything() {
        let stat = "7 (a) R 1 (b)) S 42 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 9\n"
        #expect(Lineage.birth(stat) == Lineage.Birth(parent: 42, started: 123456))
        #expect(Lineage.birth("") == nil)
    }
}
