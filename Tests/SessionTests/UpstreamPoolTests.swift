import Glibc
import PinproxyHTTPWire
import PinproxyTLS
import PinproxyTestAuthority
import PinproxyTransport
import Testing

@testable import PinproxyEventLoop
@testable import PinproxySession

@Suite struct UpstreamPoolTests {
    private let bench: Workbench
    private let minute: UInt64 = 60_000_000_000

    init() throws { bench = try Workbench() }

    private func key(_ host: String = "a.test") -> OriginKey {
        key(host, .plain)
    }

    private func key(_ host: String, _ layer: OriginKey.Layer) -> OriginKey {
        OriginKey(
            host: host, port: 443, layer: layer, parent: nil,
            addresses: AddressGuard(AddressRules(), client: .thisMachine))
    }

    /// A connection, and the origin's end of it.
    private func connection(
        to key: OriginKey, in pool: UpstreamPool? = nil, validUntil: Int64 = .max
    ) throws -> (HTTP1Upstream, origin: CInt) {
        let (inner, outer) = try Socket.pair()
        let stream = ByteStream(loop: bench.loop, descriptor: Descriptor(owning: inner))
        let address = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 443)
        return (
            HTTP1Upstream(
                Establishment(
                    loop: bench.loop, stream: stream, origin: (pool ?? bench.pool).origin(for: key),
                    validUntil: validUntil, address: address),
                received: ByteBuffer(slabs: bench.slabs)), outer
        )
    }

    /// Gives a new connection to the pool and keeps nothing of it.
    private func park(
        _ key: OriginKey, in pool: UpstreamPool? = nil, validUntil: Int64 = .max, idle: UInt64 = 60_000_000_000
    ) throws -> CInt {
        let (connection, origin) = try connection(to: key, in: pool, validUntil: validUntil)
        (pool ?? bench.pool).giveBack(connection, idleNanoseconds: idle)
        return origin
    }

    @Test func theOneUsedLastComesFirstOfItsOwnOriginOnly() throws {
        let (first, a) = try connection(to: key())
        let (second, b) = try connection(to: key())
        let (other, c) = try connection(to: key("b.test"))
        for connection in [first, second, other] { bench.pool.giveBack(connection, idleNanoseconds: minute) }
        #expect(bench.pool.idleCount == 3)
        let origin = bench.pool.origin(for: key())
        #expect(origin.takeIdle(at: 0) === second)
        #expect(origin.takeIdle(at: 0) === first)
        #expect(origin.takeIdle(at: 0) == nil)
        #expect(bench.pool.idleCount == 1)
        bench.pool.close()
        for descriptor in [a, b, c] { close(descriptor) }
    }

    @Test func aRequestThatCantBeResentGetsNoStaleConnection() throws {
        let (connection, end) = try connection(to: key())
        bench.pool.giveBack(connection, idleNanoseconds: minute)
        close(end)
        let origin = bench.pool.origin(for: key())
        #expect(origin.lease(for: .post, at: 0) == nil)
        #expect(bench.pool.idleCount == 0)
        // A request that can be resent tries it.
        let (other, otherEnd) = try self.connection(to: key())
        bench.pool.giveBack(other, idleNanoseconds: minute)
        close(otherEnd)
        #expect(origin.lease(for: .get, at: 0) === other)
        other.close()
    }

    @Test func oneOriginKeepsAsManyAsALoadUsesAtOneTime() throws {
        let load = try (0..<256).map { _ in try connection(to: key()) }
        for _ in 0..<2 {
            for (connection, _) in load { bench.pool.giveBack(connection, idleNanoseconds: minute) }
            #expect(bench.pool.idleCount == 256)
            let origin = bench.pool.origin(for: key())
            for (connection, _) in load.reversed() { #expect(origin.takeIdle(at: 0) === connection) }
        }
        for (connection, end) in load {
            connection.close()
            close(end)
        }
    }

    @Test func closesTheLongestIdleOfAllOriginsBeyondTheLimit() throws {
        let pool = UpstreamPool(capacity: 4)
        let a = try (0..<2).map { _ in try park(key("a.test"), in: pool) }
        let b = try (0..<2).map { _ in try park(key("b.test"), in: pool) }
        let c = try park(key("c.test"), in: pool)
        #expect(pool.idleCount == 4)
        #expect((a + b + [c]).map(isClosed) == [true, false, false, false, false])
        // Use makes the first of b the latest; then a and the rest of b are the next to go.
        do {
            let used = try #require(pool.origin(for: key("b.test")).takeIdle(at: 0))
            pool.giveBack(used, idleNanoseconds: minute)
        }
        let d = try (0..<3).map { _ in try park(key("d.test"), in: pool) }
        #expect(pool.idleCount == 4)
        #expect((a + b + [c] + d).map(isClosed) == [true, true, true, false, true, false, false, false])
        pool.close()
        for end in a + b + [c] + d {
            #expect(isClosed(end))
            close(end)
        }
    }

    /// Compared with a list of all idle connections, for any order of events.
    @Test func theBoundHoldsUnderAnySequenceOfUses() throws {
        var random = SystemRandomNumberGenerator()
        let pool = UpstreamPool(capacity: 8)
        let keys = ["a.test", "b.test", "c.test"].map { key($0) }
        var idle: [UpstreamConnection] = []
        var busy: [UpstreamConnection] = []
        var ends: [CInt] = []
        for _ in 0..<2000 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0 where ends.count < 200:
                let (made, end) = try connection(to: keys.randomElement(using: &random)!, in: pool)
                busy.append(made)
                ends.append(end)
            case 1, 2:
                guard let index = busy.indices.randomElement(using: &random) else { continue }
                if idle.count == 8 { idle.removeFirst() }
                idle.append(busy[index])
                pool.giveBack(busy.remove(at: index), idleNanoseconds: minute)
            case 3:
                let key = keys.randomElement(using: &random)!
                let taken = pool.origin(for: key).takeIdle(at: 0)
                #expect(taken === idle.last { $0.origin.key == key })
                guard let taken else { continue }
                idle.removeAll { $0 === taken }
                busy.append(taken)
            default:
                guard Int.random(in: 0..<8, using: &random) == 0,
                    let index = idle.indices.randomElement(using: &random)
                else { continue }
                idle[index].origin.drop(idle[index])
                idle.remove(at: index)
            }
            try #require(pool.idleCount == idle.count)
        }
        for connection in busy { connection.close() }
        busy = []
        idle = []
        pool.close()
        #expect(pool.idleCount == 0)
        #expect(ends.allSatisfy(isClosed))
        for end in ends { close(end) }
    }

    @Test func theBoundIsAShareOfTheDescriptors() {
        #expect(UpstreamPool.capacity(descriptors: 1024, pools: 2) == 170)
        #expect(UpstreamPool.capacity(descriptors: 1_048_576, pools: 4) == UpstreamPool.largestCapacity)
        #expect(UpstreamPool.capacity(descriptors: 3, pools: 64) == 1)
    }

    @Test func anIdleConnectionThatEndsOrSpeaksIsClosed() throws {
        let ended = try connection(to: key())
        let spoke = try connection(to: key())
        for (connection, origin) in [ended, spoke] {
            bench.pool.giveBack(connection, idleNanoseconds: minute)
            #expect(connection.stream.wantsRead)
            if origin == ended.origin {
                shutdown(origin, CInt(SHUT_WR))
            } else {
                say("HTTP/1.1 408 Bye\r\n\r\n", to: origin)
            }
            connection.stream.socketReady(.read)
            #expect(bench.pool.idleCount == 0)
        }
        for (_, origin) in [ended, spoke] { close(origin) }
    }

    @Test func readinessThatBringsNothingLeavesItIdleAndCostsNoMemory() throws {
        let (connection, origin) = try connection(to: key())
        bench.pool.giveBack(connection, idleNanoseconds: minute)
        connection.stream.socketReady(.read)
        #expect(bench.pool.idleCount == 1)
        #expect(bench.slabs.inUse == 0)
        bench.pool.close()
        close(origin)
    }

    @Test func anIdleConnectionIsClosedInTime() throws {
        let end = try park(key(), idle: 1)
        let watcher = EndWatcher(bench.stop)
        let source = SocketSource(loop: bench.loop, descriptor: end, handler: watcher)
        source.wantsRead = true
        bench.run()
        source.invalidate()
        #expect(isClosed(end))
        #expect(bench.pool.idleCount == 0)
        close(end)
    }

    @Test func aConnectionWhoseChainHasExpiredIsClosedNotHandedOut() throws {
        let old = try park(key(), validUntil: 100)
        #expect(bench.pool.origin(for: key()).takeIdle(at: 100) == nil)
        #expect(isClosed(old))
        let good = try park(key(), validUntil: 100)
        #expect(bench.pool.origin(for: key()).takeIdle(at: 99) != nil)
        close(old)
        close(good)
    }

    @Test func originsThatAreRetiredLoseTheirIdleConnections() throws {
        let a = try park(key("a.test"))
        let b = try park(key("b.test"))
        bench.pool.retire { $0.host == "a.test" }
        #expect(isClosed(a))
        #expect(!isClosed(b))
        #expect(bench.pool.idleCount == 1)
        bench.pool.close()
        #expect(isClosed(b))
        close(a)
        close(b)
    }

    /// Whatever the client did: the tunnel may have carried unseen bytes.
    @Test(arguments: [OriginKey.Layer.tunnel, .verifiedTunnel(SHA256Digest.of([1]))])
    func aTunnelIsNeverKept(layer: OriginKey.Layer) throws {
        let end = try park(key("a.test", layer))
        #expect(isClosed(end))
        #expect(bench.pool.idleCount == 0)
        #expect(bench.pool.origin(for: key("a.test", layer)).takeIdle(at: 0) == nil)
        #expect(bench.pool.origin(for: key("a.test", .plain)).takeIdle(at: 0) == nil)
        close(end)
    }

    @Test func whatDiffersInAnyPartOfItsKeyIsAnotherOrigin() throws {
        let digest = SHA256Digest.of([1])
        func key(
            _ layer: OriginKey.Layer = .tls(SHA256Digest.of([1])), port: UInt16 = 443, parent: ParentProxy? = nil,
            at addresses: AddressGuard = AddressGuard(AddressRules(), client: .thisMachine)
        ) -> OriginKey {
            OriginKey(host: "a.test", port: port, layer: layer, parent: parent, addresses: addresses)
        }
        let keys = [
            key(), key(port: 444), key(.plain), key(.tunnel), key(.verifiedTunnel(digest)),
            key(.tls(SHA256Digest.of([2]))), key(parent: ParentProxy(host: "b.test", port: 1)),
            key(parent: ParentProxy(host: "b.test", port: 1, authorization: "Basic dTpw")),
            key(at: AddressGuard(AddressRules(), client: .elsewhere)),
            key(at: AddressGuard(AddressRules(blocked: []), client: .thisMachine)),
            key(at: AddressGuard(AddressRules(allowed: [.kind(.loopback)]), client: .thisMachine)),
        ]
        #expect(Set(keys).count == keys.count)
        #expect(key() == key(.tls(digest)))
    }

    @Test func aConnectionInUseWhenItsOriginIsRetiredIsClosedWhenItIsGivenBack() throws {
        /// The configuration changes while the connection is in use, once per argument.
        func used(_ isRetired: Bool...) throws -> CInt {
            let (connection, end) = try connection(to: key())
            for isRetired in isRetired { bench.pool.retire { _ in isRetired } }
            #expect(connection.origin.isRetired == isRetired.last)
            bench.pool.giveBack(connection, idleNanoseconds: minute)
            return end
        }
        let retired = try used(true)
        #expect(isClosed(retired))
        // With the configuration restored, the connection is valid again.
        let restored = try used(true, false)
        #expect(!isClosed(restored))
        #expect(bench.pool.idleCount == 1)
        bench.pool.close()
        for end in [retired, restored] { close(end) }
    }

    @Test func connectionsOfAnEarlierNetworkAreNotUsedAgain() throws {
        let idle = try park(key())
        let origin = bench.pool.origin(for: key())
        /// The network changes while the connection is in use.
        func used() throws -> CInt {
            let (connection, end) = try connection(to: key())
            #expect(!origin.hasRetired(connection))
            bench.pool.changeNetwork()
            #expect(origin.hasRetired(connection))
            bench.pool.giveBack(connection, idleNanoseconds: minute)
            return end
        }
        let end = try used()
        #expect(isClosed(idle))
        #expect(isClosed(end))
        #expect(bench.pool.idleCount == 0)
        // Connections made afterwards are kept, even to the same origin.
        let fresh = try park(key())
        #expect(!isClosed(fresh))
        #expect(bench.pool.idleCount == 1)
        bench.pool.close()
        for end in [idle, end, fresh] { close(end) }
    }

    @Test func aClosedPoolClosesWhatIsGivenBack() throws {
        bench.pool.close()
        let end = try park(key())
        #expect(isClosed(end))
        #expect(bench.pool.idleCount == 0)
        close(end)
    }

    @Test func aClosedPoolRetiresNoOrigin() throws {
        func used() throws -> CInt {
            let (connection, end) = try connection(to: key())
            bench.pool.close()
            // The policy is the same: exchanges in flight continue, and none begins again.
            #expect(!connection.origin.isRetired && !connection.origin.hasRetired(connection))
            #expect(!bench.pool.origin(for: key()).isRetired)
            bench.pool.giveBack(connection, idleNanoseconds: minute)
            return end
        }
        let end = try used()
        #expect(isClosed(end))
        close(end)
    }

    private final class EndWatcher: SocketHandler {
        private let stop: Workbench.Stop
        init(_ stop: Workbench.Stop) { self.stop = stop }
        func socketReady(_ readiness: Readiness) { stop.isWanted = true }
    }
}

@Suite struct UpstreamSessionCacheTests {
    private typealias Entry = UpstreamSessionCache.Entry

    /// A session and a verdict of a real handshake.
    private func entry(_ bench: Workbench, validUntil: Int64) throws -> Entry {
        let authority = try OriginAuthority.shared.get()
        let context = try OriginAuthority.context(.tls12 ... .tls12)
        let peer = try Peer { authority.serve($0, with: context) }
        let target = try bench.target(port: peer.port)
        let connection = try bench.connect(to: target).get()
        connection.close()
        let made = try #require(bench.sessions.take(for: target.key, at: 0))
        #expect(made.validUntil == connection.validUntil)
        return Entry(session: made.session, verdict: made.verdict, validUntil: validUntil)
    }

    private func key(_ host: String, _ generation: UInt8 = 0) -> OriginKey {
        OriginKey(
            host: host, port: 443, layer: .tls(SHA256Digest.of([generation])), parent: nil,
            addresses: AddressGuard(AddressRules(), client: .thisMachine))
    }

    @Test func someAreKeptOfOneOriginEachForOneUseNewestFirst() throws {
        let bench = try Workbench()
        let cache = UpstreamSessionCache(perOrigin: 4)
        let made = try entry(bench, validUntil: 0)
        for validUntil in 1...6 as ClosedRange<Int64> {
            cache.store(Entry(session: made.session, verdict: made.verdict, validUntil: validUntil), for: key("a"))
        }
        let taken = (0..<5).map { _ in cache.take(for: key("a"), at: 0)?.validUntil }
        #expect(taken == [6, 5, 4, 3, nil])
    }

    @Test func anotherGenerationOrHostFindsNothing() throws {
        let bench = try Workbench()
        let cache = UpstreamSessionCache()
        cache.store(try entry(bench, validUntil: 10), for: key("a", 1))
        #expect(cache.take(for: key("a", 2), at: 0) == nil)
        #expect(cache.take(for: key("b", 1), at: 0) == nil)
        #expect(cache.take(for: key("a", 1), at: 0) != nil)
    }

    @Test func aSessionEndsWithItsChain() throws {
        let bench = try Workbench()
        let cache = UpstreamSessionCache()
        let made = try entry(bench, validUntil: 10)
        cache.store(made, for: key("a"))
        #expect(cache.take(for: key("a"), at: 10) == nil)
        cache.store(made, for: key("a"))
        #expect(cache.take(for: key("a"), at: 9) != nil)
    }

    @Test func theNumberOfSessionsIsBoundedWhoseverTheyAre() throws {
        let bench = try Workbench()
        let cache = UpstreamSessionCache(perOrigin: 4, capacity: 90)
        let made = try entry(bench, validUntil: 10)
        for index in 0..<50 { for _ in 0..<3 { cache.store(made, for: key("host-\(index)")) } }
        func found() -> Int {
            (0..<50).reduce(0) { sum, index in
                sum + (0..<4).count { _ in cache.take(for: key("host-\(index)"), at: 0) != nil }
            }
        }
        // Eviction is by origin, so a few fewer than the bound remain.
        #expect((86...90).contains(found()))
        #expect(found() == 0)
        for index in 0..<30 { for _ in 0..<3 { cache.store(made, for: key("host-\(index)")) } }
        #expect(cache.retire { $0.host == "host-7" } == 3)
        #expect(found() == 87)
    }
}
