import Foundation
import Testing

@testable import pinproxy

@Suite(.serialized) struct ReloadTests {
    @Test func saysThatNoProxyIsRunning() throws {
        let outcome = try CommandBed().configured("reload")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("no proxy is running with the state directory"))
    }

    /// The process id of a proxy that has ended may be somebody else's by now.
    @Test func takesNoStaleFileForAProxy() throws {
        let bed = try CommandBed()
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        try bed.write("state/pinproxy/pinproxy.pid", "\(getpid())\n")
        let outcome = try bed.configured("reload")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("no proxy is running"))
    }

    @Test func locksOutASecondProxy() throws {
        let bed = try CommandBed()
        let path = bed.path("pinproxy.pid")
        #expect(ProcessLock.holder(path) == nil)
        do {
            let lock = try ProcessLock(path)
            #expect(ProcessLock.holder(path) == getpid())
            let failure = #expect(throws: CommandFailure.self) { try ProcessLock(path) }
            #expect(failure?.message?.contains("(process \(getpid()))") == true)
            withExtendedLifetime(lock) {}
        }
        #expect(ProcessLock.holder(path) == nil)
        _ = try ProcessLock(path)
    }

    /// The lock is held, but its file names somebody else: the number of a process in another container, or
    /// what an editor left.
    @Test func asksNoProcessThatIsNotTheProxy() throws {
        let bed = try CommandBed()
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        let lock = try ProcessLock(bed.path("state/pinproxy/pinproxy.pid"))
        let bystander = Process()
        bystander.executableURL = URL(fileURLWithPath: "/bin/sleep")
        bystander.arguments = ["60"]
        try bystander.run()
        defer {
            kill(bystander.processIdentifier, SIGKILL)
            bystander.waitUntilExit()
        }
        try bed.write("state/pinproxy/pinproxy.pid", "\(bystander.processIdentifier)\n")
        let outcome = try bed.configured("reload")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("process \(bystander.processIdentifier)"), "\(outcome)")
        #expect(outcome.errors.contains("nothing was asked of it"), "\(outcome)")
        #expect(bystander.isRunning)
        withExtendedLifetime(lock) {}
    }
}
