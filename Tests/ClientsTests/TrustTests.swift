import EventLoop
import Foundation
import HTTPWire
import Session
import Testing

@testable import Clients

/// Who seems not to trust the proxy's authority, and who has shown that he does.
@Suite struct TrustTests {
    private func client(_ executable: String?, user: UInt32 = 1000) -> KnownClient {
        KnownClient(claimant: .user(user), executable: executable)
    }

    @Test func programsAreToldApart() {
        var signs = TrustSigns()
        signs.trusts(client("/usr/bin/curl"))
        #expect(signs.includes(client("/usr/bin/curl")))
        #expect(!signs.includes(client("/usr/bin/aria2c")))
        #expect(!signs.includes(client("/usr/bin/curl", user: 1001)))
    }

    /// One that isn't known may be any of them: no false alarm.
    @Test func anUnknownProgramMayBeAny() {
        var signs = TrustSigns()
        #expect(!signs.includes(client(nil)))
        signs.trusts(client("/usr/bin/curl"))
        #expect(signs.includes(client(nil)))
        signs.trusts(client(nil, user: 1001))
        #expect(signs.includes(client("/usr/bin/aria2c", user: 1001)))
    }

    @Test func whatIsKeptIsBounded() {
        var signs = TrustSigns()
        for user in 0..<5000 { signs.trusts(client("/bin/a", user: UInt32(user))) }
        #expect(!signs.includes(client("/bin/a", user: 0)) && signs.includes(client("/bin/a", user: 4999)))
        for number in 0..<100 { signs.trusts(client("/bin/\(number)", user: 4999)) }
        // Too many to be told apart.
        #expect(signs.includes(client("/bin/other", user: 4999)))
    }

    @Test func aClientIsNewsOnce() {
        let watch = TrustWatch()
        #expect(watch.distrusts(client("/bin/a")))
        #expect(!watch.distrusts(client("/bin/a")))
        #expect(watch.distrusts(client("/bin/b")))
        watch.trusts(client("/bin/a"))
        #expect(!watch.distrusts(client("/bin/a")))
        for number in 0..<3000 { _ = watch.distrusts(client("/bin/\(number)")) }
    }

    // MARK: Of a run

    private func departure(_ executable: String?) throws -> ClientDeparture {
        ClientDeparture(
            client: client(executable), source: .unix("/x"), traits: nil, authority: try Authority.parse("a.test", defaultPort: 443).get())
    }

    /// Browsers close connections to spare, perhaps before they ask over another one.
    @Test func aRunsProgramThatAsksAfterAllIsNotTold() throws {
        let run = try RunRegister().begin(RunToken(), owner: 1000, isOwn: false, grant: .nothing) {}
        run.left(try departure("/usr/bin/chromium"))
        run.trusts(client("/usr/bin/chromium"))
        run.left(try departure("/usr/bin/chromium"))
        run.left(try departure("/usr/bin/aria2c"))
        run.left(try departure("/usr/bin/aria2c"))
        #expect(run.refusals(from: 0).isEmpty)
        run.settle()
        #expect(Array(run.refusals(from: 0)) == [RunRefusal(host: "a.test", cause: ClientDeparture.cause)])
        #expect(run.summary.counts == [2])
        run.settle()
        #expect(run.summary.counts == [2])
    }

    @Test func aRunsDeparturesAreBounded() throws {
        let run = try RunRegister().begin(RunToken(), owner: 1000, isOwn: false, grant: .nothing) {}
        for _ in 0..<1000 { run.left(try departure("/bin/a")) }
        run.settle()
        #expect(run.summary.counts == [256])
    }
}
