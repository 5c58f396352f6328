import Foundation
import PinproxyTLS
import Synchronization
import Testing

@testable import PinproxySecurity

/// A directory that root uses and a hostile user owns.
@Suite struct TrustedDirectoryTests {
    private static let isRoot = geteuid() == 0
    private static let nobody: uid_t = 65534

    let bed: TemporaryDirectory
    private var state: TrustedDirectory { TrustedDirectory(bed.path + "/state") }

    init() throws {
        bed = try TemporaryDirectory()
        try state.create()
    }

    private func path(_ name: String) -> String { "\(bed.path)/\(name)" }

    private func give(_ name: String, to user: uid_t = nobody) { #expect(lchown(path(name), user, user) == 0) }

    private func contents(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }

    private func owner(of name: String) -> uid_t? {
        var status = stat()
        return lstat(path(name), &status) == 0 ? status.st_uid : nil
    }

    private func untrusted(_ body: () throws -> Void) -> String? {
        do { try body() } catch FileProblem.untrusted(let text) { return text } catch { Issue.record("\(error)") }
        return nil
    }

    // MARK: Files

    @Test func whatIsWrittenIsReadAndNothingElseIsLeft() throws {
        try state.createFolder("trust/key", mode: 0o755)
        for name in ["a", "trust/key/b"] {
            try state.write([1, 2, 3], to: name, mode: 0o640)
            #expect(try state.read(name).bytes == [1, 2, 3])
            #expect(try bed.mode("state/" + name) == 0o640)
        }
        #expect(state.names() == ["a", "trust"] && state.names(in: "trust/key") == ["b"])
        #expect(throws: FileProblem.system(ENOENT)) { try state.read("missing") }
        #expect(try state.has("a") && !state.has("missing") && !state.has("no/folder"))
        for name in ["", "..", "../state/a", "trust/../a"] {
            #expect(throws: FileProblem.self) { try state.read(name) }
        }
    }

    @Test func noLinkIsFollowed() throws {
        _ = try bed.write("secret", "victim")
        for target in [path("victim"), "../victim", path("missing")] {
            try? FileManager.default.removeItem(atPath: path("state/link"))
            try FileManager.default.createSymbolicLink(atPath: path("state/link"), withDestinationPath: target)
            #expect(
                untrusted { _ = try state.read("link") }?.hasSuffix(
                    "/state/link is a symbolic link, and isn't followed") == true)
            #expect(untrusted { _ = try state.openForWriting("link", O_WRONLY, mode: 0o600) } != nil)
            #expect(untrusted { _ = try state.socket("link") } != nil)
            #expect(try state.has("link"))
            // The link is replaced, and its target is unchanged.
            try state.write([0x78], to: "link", mode: 0o600)
            #expect(try contents("state/link") == "x")
        }
        #expect(try contents("victim") == "secret" && owner(of: "missing") == nil)
        try FileManager.default.createDirectory(atPath: path("elsewhere"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: path("state/trust"), withDestinationPath: path("elsewhere"))
        #expect(untrusted { try state.write([1], to: "trust/file", mode: 0o600) } != nil)
        #expect(untrusted { try state.createFolder("trust/key", mode: 0o755) } != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("elsewhere")) == [])
    }

    /// Neither blocks.
    @Test func aPipeIsNoFile() throws {
        #expect(mkfifo(path("state/pipe"), 0o600) == 0)
        #expect(throws: FileProblem.notAFile) { try state.read("pipe") }
        #expect(throws: FileProblem.notAFile) { try state.openForWriting("pipe", O_WRONLY, mode: 0o600) }
        #expect(throws: FileProblem.notAFile) { try state.openForWriting("pipe", O_RDWR, mode: 0o600) }
        #expect(mkdir(path("state/folder"), 0o755) == 0)
        #expect(throws: FileProblem.notAFile) { try state.read("folder") }
        #expect(untrusted { _ = try state.socket("pipe") }?.hasSuffix("/pipe is not a socket") == true)
    }

    @Test func aFileWithTwoNamesIsNotWrittenInItsPlace() throws {
        _ = try bed.write("secret", "victim")
        #expect(link(path("victim"), path("state/exec.log")) == 0)
        #expect(
            untrusted { _ = try state.openForWriting("exec.log", O_WRONLY, mode: 0o600) }?.contains("hard links")
                == true)
        try state.write([0x78], to: "exec.log", mode: 0o600)
        #expect(try contents("victim") == "secret")
    }

    @Test(arguments: [0o666, 0o620, 0o602])
    func whatOthersCanWriteIsNotRead(_ mode: Int) throws {
        _ = try bed.write("x", "state/file", mode: mode)
        #expect(untrusted { _ = try state.read("file") }?.contains("can be written by others") == true)
    }

    @Test(.enabled(if: isRoot, "needs root, to give files away")) func whatBelongsToAnotherIsNotRead() throws {
        _ = try bed.write("x", "state/file")
        give("state/file")
        #expect(untrusted { _ = try state.read("file") }?.contains("belongs to user 65534") == true)
        #expect(untrusted { _ = try state.openForWriting("file", O_WRONLY, mode: 0o600) } != nil)
    }

    // MARK: Directories

    @Test(arguments: [(0o777, false), (0o1777, true), (0o757, false), (0o755, true), (0o700, true)])
    func aDirectoryIsNotOthersToChange(_ mode: Int, _ isTaken: Bool) throws {
        for name in ["state", ""] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
            #expect((untrusted { try state.write([1], to: "a", mode: 0o600) } == nil) == isTaken, "\(name)")
            #expect((untrusted { try state.requireOwn() } == nil) == isTaken, "\(name)")
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path(name))
        }
    }

    @Test(.enabled(if: isRoot, "needs root, to give files away")) func aGroupMayWriteIfItIsTheOwnersOwn() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o775], ofItemAtPath: path("state"))
        for (user, group, isTaken) in [(0, 0, true), (0, 50, false), (65534, 65534, true), (65534, 50, false)]
            as [(uid_t, gid_t, Bool)]
        {
            #expect(chown(path("state"), user, group) == 0)
            #expect((untrusted { _ = try state.has("a") } == nil) == isTaken, "\(user):\(group)")
        }
    }

    @Test(.enabled(if: isRoot, "needs root, to give files away")) func rootKeepsNothingInAnothersDirectory() throws {
        _ = try bed.write("x", "state/file")
        give("state/file")
        give("state")
        #expect(
            untrusted { try state.requireOwn() } == "\(path("state")) belongs to user 65534, and this runs as user 0")
        #expect(untrusted { _ = try state.openForWriting("file", O_WRONLY, mode: 0o600) } != nil)
        // Its contents are that user's claim, and what root writes there belongs to that user.
        #expect(try state.read("file").bytes == [0x78])
        try state.createFolder("folder", mode: 0o700)
        try state.write([1], to: "folder/own", mode: 0o600)
        #expect(owner(of: "state/folder") == Self.nobody && owner(of: "state/folder/own") == Self.nobody)
        #expect(try bed.mode("state/folder/own") == 0o600)
    }

    /// The owner of a directory on the path could replace root's directory.
    @Test(.enabled(if: isRoot, "needs root, to give files away")) func pastAnothersDirectoryAllIsThatUsers() throws {
        let inner = TrustedDirectory(path("state/inner"))
        try inner.create()
        give("state")
        #expect(
            untrusted { try inner.write([1], to: "a", mode: 0o600) }?.contains(
                "belongs to user 0, in a directory of user 65534") == true)
        give("state/inner", to: 1)
        #expect(untrusted { _ = try inner.has("a") } != nil)
        give("state/inner")
        try inner.write([1], to: "a", mode: 0o600)
        #expect(owner(of: "state/inner/a") == Self.nobody)
    }

    @Test(.enabled(if: isRoot, "needs root, to give files away")) func aLinkOnTheWayIsFollowedIfItIsOurs() throws {
        try FileManager.default.createSymbolicLink(atPath: path("way"), withDestinationPath: "state/./../state")
        let through = TrustedDirectory(path("way"))
        try through.write([1], to: "a", mode: 0o600)
        #expect(try state.read("a").bytes == [1])
        try FileManager.default.createSymbolicLink(atPath: path("circle"), withDestinationPath: "circle")
        #expect(throws: FileProblem.system(ELOOP)) { try TrustedDirectory(path("circle")).create() }
        give("way")
        #expect(untrusted { _ = try through.read("a") }?.contains("a symbolic link that user 65534 has made") == true)
    }

    /// A slash and a combining mark are one character in Swift, and separate two names for the kernel.
    @Test(arguments: ["inner", "\u{301}inner"]) func whatAnybodyMayWriteToIsFound(name: String) throws {
        #expect(mkdir(path("open"), 0o700) == 0 && mkdir(path("open/\(name)"), 0o700) == 0)
        let inner = TrustedDirectory(path("open/\(name)"))
        try inner.write([1], to: "a", mode: 0o600)
        #expect(chmod(path("open"), 0o777) == 0)
        #expect(untrusted { _ = try inner.read("a") } != nil)
    }

    @Test func aRelativePathIsOfTheWorkingDirectory() throws {
        let here = FileManager.default.currentDirectoryPath
        let up = String(repeating: "../", count: here.split(separator: "/").count)
        let relative = TrustedDirectory(up + state.path.dropFirst())
        try relative.write([7], to: "a", mode: 0o600)
        #expect(try state.read("a").bytes == [7])
    }

    // MARK: Races

    /// A user keeps swapping the directory for a link to one of root's, while root writes.
    @Test(.enabled(if: isRoot, "needs root, to give files away"), .timeLimit(.minutes(2)))
    func nothingIsWrittenWhereASwapLeads() throws {
        try FileManager.default.createDirectory(atPath: path("victim"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(
            atPath: path("anothers/state/folder"), withIntermediateDirectories: true)
        for name in ["anothers", "anothers/state", "anothers/state/folder"] { give(name) }
        let swapper = Process()
        swapper.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        // renameat2(2) with RENAME_EXCHANGE: one or the other always exists.
        let script = """
            import ctypes, os, sys
            os.chdir(sys.argv[1])
            os.symlink(sys.argv[2], "link")
            os.symlink(sys.argv[2], "state/link")
            libc = ctypes.CDLL(None)
            print(flush=True)
            while True:
                libc.renameat2(-100, b"state", -100, b"link", 2)
                libc.renameat2(-100, b"state/folder", -100, b"state/link", 2)
            """
        swapper.arguments = [
            "--reuid", "65534", "--regid", "65534", "--clear-groups", "--pdeathsig", "KILL", "/usr/bin/python3", "-c",
            script, path("anothers"),
            path("victim"),
        ]
        let ready = Pipe()
        swapper.standardOutput = ready
        try swapper.run()
        defer {
            kill(swapper.processIdentifier, SIGKILL)
            swapper.waitUntilExit()
        }
        try #require(!ready.fileHandleForReading.availableData.isEmpty, "it has begun")
        let attacked = TrustedDirectory(path("anothers/state"))
        var written = 0
        for _ in 0..<100_000 where written < 50 {
            if (try? attacked.write([1], to: "file", mode: 0o600)) != nil { written += 1 }
            if (try? attacked.write([1], to: "folder/file", mode: 0o600)) != nil { written += 1 }
        }
        #expect(written >= 50)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path("victim")) == [])
    }

    @Test(.timeLimit(.minutes(1))) func aLockIsOneHoldersAtATimeAndLeavesNoFile() async throws {
        let (inside, state) = (Holders(), state)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<50 {
                        let lock = try state.lock("a.lock")
                        #expect(inside.count.add(1, ordering: .relaxed).newValue == 1)
                        inside.count.subtract(1, ordering: .relaxed)
                        withExtendedLifetime(lock) {}
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(state.names() == [])
        let lock = try state.lock("a.lock")
        #expect(try bed.mode("state/a.lock") == 0o600)
        withExtendedLifetime(lock) {}
    }

    private final class Holders: Sendable {
        let count = Atomic(0)
    }

    // MARK: Leftovers

    @Test func onlyLeftoversOfThoseThatAreGoneGo() throws {
        // No process has these numbers: the largest possible, and one more.
        for name in ["a.99999999.new", "a.1.new", "b.99999999.new", "a.x.new", "a.99999999"] {
            _ = try bed.write("x", "state/" + name)
        }
        try FileManager.default.createSymbolicLink(atPath: path("state/a.99999998.new"), withDestinationPath: "a.1.new")
        #expect(NewFile.removeLeftovers(of: ["a"], in: state) == ["a.99999999.new"])
        #expect(state.names().count == 5)
    }
}
