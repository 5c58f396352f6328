import Foundation
import PinproxySecurity
import Testing

@testable import pinproxy

@Suite(.serialized) struct ReloadTests {
    @Test func saysThatNoProxyIsRunning() throws {
        let outcome = try CommandBed().configured("reload")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("no proxy is running with the state directory"))
    }

    /// The process ID of a proxy that has ended may belong to another process by now.
    @Test func takesNoStaleFileForAProxy() throws {
        let bed = try CommandBed()
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        try bed.write("state/pinproxy/pinproxy.pid", "\(getpid())\n")
        let outcome = try bed.configured("reload")
        #expect(outcome.code == 1)
        #expect(outcome.errors.contains("no proxy is running"))
    }

    @Test(.timeLimit(.minutes(1))) func locksOutASecondProxy() throws {
        let bed = try CommandBed()
        let state = TrustedDirectory(bed.directory)
        #expect(ProcessLock.holder(in: state) == nil)
        do {
            let lock = try ProcessLock(state)
            #expect(ProcessLock.holder(in: state) == getpid())
            let failure = #expect(throws: CommandFailure.self) { try ProcessLock(state) }
            #expect(failure?.message?.contains("(process \(getpid()))") == true)
            withExtendedLifetime(lock) {}
        }
        // A child of another test holds a copy of the lock until its exec.
        while ProcessLock.holder(in: state) != nil { sched_yield() }
        _ = try ProcessLock(state)
    }

    /// Any user may read the PID file, and so lock it. That doesn't keep a proxy from starting, and is reported.
    @Test func nobodyElseLocksAProxyOut() throws {
        let bed = try CommandBed()
        try bed.write("pinproxy.pid", "1\n")
        let another = open(bed.path("pinproxy.pid"), O_RDONLY)
        defer { close(another) }
        #expect(flock(another, LOCK_SH) == 0)
        let lock = try ProcessLock(TrustedDirectory(bed.directory))
        #expect(lock.problem == "another process holds its lock")
        #expect(
            try FileManager.default.attributesOfItem(atPath: bed.path("pinproxy.lock"))[.posixPermissions] as? Int
                == 0o600)
    }

    /// The lock is held, but its file names another process: the number of a process in another container, or what an
    /// editor left.
    @Test func asksNoProcessThatIsNotTheProxy() throws {
        let bed = try CommandBed()
        try FileManager.default.createDirectory(atPath: bed.path("state/pinproxy"), withIntermediateDirectories: true)
        let lock = try ProcessLock(TrustedDirectory(bed.path("state/pinproxy")))
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
        #expect(outcome.errors.contains("no request was sent"), "\(outcome)")
        #expect(bystander.isRunning)
        withExtendedLifetime(lock) {}
    }
}
