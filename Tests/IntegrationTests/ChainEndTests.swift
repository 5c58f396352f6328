import Foundation
import PinproxyTestAuthority
import Testing

/// A verdict is good only while its chain is valid. Idle connections made under it expire with the chain.
@Suite(.timeLimit(.minutes(5)))
struct ChainEndTests {
    /// The chain's lifetime in seconds. Everything before its expiry must fit in.
    private static let lifetime: Int64 = 15

    @Test func noConnectionIsUsedOnceItsChainHasEnded() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: [OriginBed.name: "127.0.0.1"],
                sections: ["proxy": ["workers: 1"]])
            let end = TestRoots.now + Self.lifetime
            let chain = try roots.chain(OriginBed.name) { $0.notAfter = end }
            let origin = try await PythonPeer.origin(in: bed, chain: chain)
            let shared = SharedBed(bed: bed, proxy: proxy, originPort: origin.port, origin: origin)

            // One upstream connection is idle in the pool. One is held for a client that has yet to send a request.
            let asked = try await HeldClient(in: shared)
            let waiting = try await HeldClient(in: shared)
            for client in [asked, waiting] {
                #expect(try await client.connect() == "200")
                #expect(try await client.secure() == "new")
            }
            #expect(try await asked.get() == "200")
            try #require(TestRoots.now < end, "the machine was too busy to begin in time")

            try await eventually("the end of the chain") { TestRoots.now > end + 1 }
            #expect(try await asked.get("/late") == "502")
            #expect(try await waiting.get("/late") == "502")
            #expect(try await shared.proxy.connect(to: shared.authority).status == 502)
            #expect(!origin.events.all("request").contains { $0["target"] == "/late" })
        }
    }
}
