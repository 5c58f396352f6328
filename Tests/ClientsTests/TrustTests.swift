import Foundation
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import Testing

@testable import PinproxyClients

/// Which clients seem not to trust the proxy's authority, and which have shown that they do.
@Suite struct TrustTests {
    private func client(_ executable: String?, user: UInt32 = 1000, agent: String? = nil) -> KnownClient {
        KnownClient(
            claimant: .user(user), executable: executable,
            agent: agent.map { ClientAgent(Array($0.utf8).span) } ?? .none)
    }

    private func at(_ seconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func programsAreDistinguished() {
        var signs = TrustSigns()
        signs.trusts(client("/usr/bin/curl"), at: at(5))
        for instant in [nil, at(1), at(100)] {
            #expect(signs.includes(client("/usr/bin/curl"), since: instant))
            #expect(!signs.includes(client("/usr/bin/aria2c"), since: instant))
            #expect(!signs.includes(client("/usr/bin/curl", user: 1001), since: instant))
        }
    }

    /// An unknown program may be any of them, for a while: no false alarm.
    @Test func anUnknownProgramMayBeAny() {
        var signs = TrustSigns()
        #expect(!signs.includes(client(nil), since: nil))
        signs.trusts(client("/usr/bin/curl"), at: at(5))
        #expect(signs.includes(client(nil), since: nil) && signs.includes(client(nil), since: at(5)))
        #expect(!signs.includes(client(nil), since: at(6)))
        signs.trusts(client(nil, user: 1001), at: at(5))
        #expect(signs.includes(client("/usr/bin/aria2c", user: 1001), since: at(5)))
        #expect(!signs.includes(client("/usr/bin/aria2c", user: 1001), since: at(6)))
    }

    /// As within a run, and from other machines.
    @Test func programsOfUnknownExecutableAreDistinguishedByTheirAgent() {
        var signs = TrustSigns()
        signs.trusts(client(nil, agent: "curl/8"), at: at(5))
        signs.trusts(client("/usr/bin/python3", agent: "pip/25"), at: at(5))
        #expect(
            signs.includes(client(nil, agent: "curl/8"), since: at(5))
                && signs.includes(client(nil, agent: "pip/25"), since: at(5)))
        #expect(!signs.includes(client(nil, agent: "git/2"), since: nil) && !signs.includes(client(nil), since: nil))
        // It may be the first program.
        #expect(signs.includes(client("/usr/bin/curl", agent: "curl/8"), since: at(5)))
        // It isn't the second program.
        #expect(!signs.includes(client("/usr/bin/pip", agent: "pip/25"), since: nil))
    }

    @Test func whatIsKeptIsBounded() {
        var signs = TrustSigns()
        for user in 0..<5000 { signs.trusts(client("/bin/a", user: UInt32(user)), at: at(1)) }
        #expect(
            !signs.includes(client("/bin/a", user: 0), since: nil)
                && signs.includes(client("/bin/a", user: 4999), since: nil))
        for number in 0..<100 { signs.trusts(client("/bin/\(number)", user: 4999), at: at(2)) }
        // Too many to distinguish.
        #expect(signs.includes(client("/bin/other", user: 4999), since: at(2)))
    }

    @Test func aClientIsNewsOnce() {
        let watch = TrustWatch()
        #expect(watch.distrusts(client("/bin/a"), since: at(0)))
        #expect(!watch.distrusts(client("/bin/a"), since: at(0)))
        #expect(watch.distrusts(client("/bin/b"), since: at(0)))
        watch.trusts(client("/bin/a"), at: at(1))
        #expect(!watch.distrusts(client("/bin/a"), since: at(9)))
        for number in 0..<3000 { #expect(watch.distrusts(client("/bin/many-\(number)"), since: at(9))) }
    }

    @Test func agentsDoNotFillTheLog() {
        let watch = TrustWatch()
        let news = (0..<1000).count { watch.distrusts(client(nil, agent: "agent/\($0)"), since: at(0)) }
        #expect(news == 16)
        #expect(watch.distrusts(client(nil, user: 1001, agent: "agent/0"), since: at(0)))
    }

    // MARK: Of a run

    private func departure(_ executable: String?) throws -> ClientDeparture {
        ClientDeparture(
            client: client(executable), source: .unix("/x"), traits: nil,
            authority: try Authority.parse("a.test", defaultPort: 443).get())
    }

    /// Browsers close spare connections, perhaps before they send a request over another.
    @Test func aRunsProgramThatAsksAfterAllIsNotTold() throws {
        let run = try RunRegister().begin(RunToken(), owner: 1000, isOwn: false, grant: .nothing) {}
        run.left(try departure("/usr/bin/chromium"))
        run.trusts(client("/usr/bin/chromium"), at: at(1))
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
