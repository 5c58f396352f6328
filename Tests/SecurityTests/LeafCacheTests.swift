import Dispatch
import PinproxyTLS
import PinproxyTestAuthority
import Synchronization
import Testing

@testable import PinproxySecurity

@Suite struct LeafCacheTests {
    static let now = CertificateTemplate.now
    static let day = CertificateTemplate.day

    let authority: LocalAuthority

    init() throws {
        authority = try LocalAuthority.issue(for: LocalAuthority.generateKey(), machine: "test", at: Self.now)
    }

    @Test func aHostIsIssuedForOnce() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day)
        let first = try cache.identity(for: .dns("a.test"), now: Self.now)
        #expect(try cache.identity(for: .dns("a.test"), now: Self.now).leaf === first.leaf)
        #expect(try cache.identity(for: .dns("b.test"), now: Self.now).leaf !== first.leaf)
        #expect(cache.statistics == .init(entries: 2, issued: 2, evicted: 0))
    }

    /// A leaf presented to many clients is parsed once, so that it isn't encoded for each: the bytes stay the same.
    @Test func aLeafInUseStaysTheSame() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day)
        let first = try cache.identity(for: .dns("a.test"), now: Self.now)
        var last = first
        for _ in 0..<100 { last = try cache.identity(for: .dns("a.test"), now: Self.now) }
        #expect(last.leaf !== first.leaf)
        #expect(last.leaf.der == first.leaf.der)
        #expect(last.chain.map(\.der) == first.chain.map(\.der))
        #expect(last.key.matches(last.leaf))
        #expect(try cache.identity(for: .dns("a.test"), now: Self.now).leaf === last.leaf)
        #expect(cache.statistics.issued == 1)
    }

    @Test func atHalfOfItsLifeALeafIsReplaced() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day)
        let first = try cache.identity(for: .dns("a.test"), now: Self.now).leaf
        #expect(try cache.identity(for: .dns("a.test"), now: Self.now + 15 * Self.day - 1).leaf === first)
        let second = try cache.identity(for: .dns("a.test"), now: Self.now + 15 * Self.day).leaf
        #expect(second !== first)
        #expect(second.notAfter == Self.now + 45 * Self.day)
        #expect(cache.statistics.entries == 1)
    }

    @Test func aClockSetBackGivesANewLeaf() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day)
        let first = try cache.identity(for: .dns("a.test"), now: Self.now + 10 * Self.day).leaf
        #expect(try cache.identity(for: .dns("a.test"), now: Self.now + 9 * Self.day).leaf === first)
        let second = try cache.identity(for: .dns("a.test"), now: Self.now + 8 * Self.day).leaf
        #expect(second.notBefore <= Self.now + 8 * Self.day)
        #expect(second !== first)
    }

    @Test func theCacheIsBoundedAndKeepsWhatIsUsed() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day, capacity: 8)
        let kept = try cache.identity(for: .dns("kept.test"), now: Self.now).leaf
        for number in 0..<50 {
            _ = try cache.identity(for: .dns("h\(number).test"), now: Self.now)
            #expect(try cache.identity(for: .dns("kept.test"), now: Self.now).leaf === kept)
        }
        #expect(cache.statistics == .init(entries: 8, issued: 51, evicted: 43))
    }

    @Test func failuresAreNotKept() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day)
        let end = authority.certificate.notAfter
        #expect(throws: AuthorityError.self) { try cache.identity(for: .dns("a.test"), now: end + 1) }
        #expect(throws: AuthorityError.self) { try cache.identity(for: .dns("*.test"), now: Self.now) }
        #expect(try cache.identity(for: .dns("a.test"), now: end - 10).leaf.notAfter == end)
        #expect(cache.statistics.issued == 1)
    }

    /// Many threads, few hosts, all cold at once: each host has one leaf, and everyone gets it.
    @Test func noStampedeOnAColdHost() throws {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day)
        let seen = Mutex<[String: Set<Certificate>]>([:])
        DispatchQueue.concurrentPerform(iterations: 64) { number in
            let host = "h\(number % 4).test"
            guard let leaf = try? cache.identity(for: .dns(host), now: Self.now).leaf else { return }
            seen.withLock { _ = $0[host, default: []].insert(leaf) }
        }
        seen.withLock { seen in
            #expect(seen.count == 4)
            #expect(seen.values.allSatisfy { $0.count == 1 })
        }
        #expect(cache.statistics == .init(entries: 4, issued: 4, evicted: 0))
    }

    @Test func manyThreadsInASmallCache() {
        let cache = LeafCache(authority: authority, lifetime: 30 * Self.day, capacity: 3)
        let wrong = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 200) { number in
            let host = "h\(number % 7).test"
            let names = try? cache.identity(for: .dns(host), now: Self.now).leaf.dnsNames
            if names != [host] { wrong.add(1, ordering: .relaxed) }
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
        #expect(cache.statistics.entries == 3)
    }
}
