import Foundation
import Testing

@testable import pinproxy

@Suite struct ReloadTests {
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

    @Test(arguments: [
        ReloadStatus(process: 7, count: 2, outcome: .accepted),
        ReloadStatus(process: 7, count: 2, outcome: .refused("a:1:1: error: x\nb: error: y")),
        ReloadStatus(process: 7, count: 2, outcome: .refused("")),
    ]) func statusSurvivesTheFile(_ status: ReloadStatus) {
        #expect(ReloadStatus(status.text) == status)
    }

    @Test(arguments: ["", "7", "7 2", "7 2\nmaybe\n", "x 2\naccepted\n"]) func refusesABrokenStatus(_ text: String) {
        #expect(ReloadStatus(text) == nil)
    }
}
