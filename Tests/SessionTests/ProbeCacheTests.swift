import PinproxyEventLoop
import PinproxySecurity
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySession

@Suite struct ProbeCacheTests {
    private let authority: OriginAuthority
    private let now = CertificateTemplate.now

    init() throws {
        authority = try OriginAuthority.shared.get()
    }

    private func finding(version: TLSVersion = .tls13) -> ProbeFinding {
        let presented = PresentedChain(leaf: authority.identity.leaf)
        let verdict = SecurityPolicy().evaluate(presented, host: .dns("api.test"), anchors: authority.anchors, at: now)
        return ProbeFinding(verdict: verdict, version: version)
    }

    private func place(
        host: String = "api.test", port: UInt16 = 443, generation: [UInt8] = [1], parent: ParentProxy? = nil,
        address: String = "192.0.2.1"
    ) throws -> ProbeCache.Place {
        ProbeCache.Place(
            origin: OriginKey(
                host: host, port: port, layer: .verifiedTunnel(SHA256Digest.of(generation)), parent: parent,
                addresses: AddressGuard(AddressRules(), client: .thisMachine)),
            address: SocketAddress(ip: try #require(IPAddress(address)), port: port))
    }

    @Test func aFindingHoldsForAMinuteByTheClockThatIsGiven() throws {
        let cache = ProbeCache()
        cache.store(finding(), for: try place(), applicationProtocols: ["h2"], at: now)
        for (time, isThere) in [(now, true), (now + 59, true), (now + 60, false), (now - 1, false)] {
            let found = cache.finding(for: try place(), applicationProtocols: ["h2"], at: time)
            #expect((found != nil) == isThere, "at \(time - now)")
        }
    }

    @Test func noFindingOutlivesItsChain() throws {
        let cache = ProbeCache()
        let end = finding().verdict.validUntil
        cache.store(finding(), for: try place(), applicationProtocols: [], at: end - 10)
        #expect(cache.finding(for: try place(), applicationProtocols: [], at: end - 1) != nil)
        #expect(cache.finding(for: try place(), applicationProtocols: [], at: end) == nil)
    }

    @Test func forgettingIsOfOneOriginAtEveryAddress() throws {
        let cache = ProbeCache()
        let (here, there) = (try place(), try place(address: "192.0.2.2"))
        let other = try place(host: "other.test")
        for place in [here, there, other] { cache.store(finding(), for: place, applicationProtocols: ["h2"], at: now) }
        cache.forget { $0 == here.origin }
        #expect(
            [here, there, other].map { cache.finding(for: $0, applicationProtocols: nil, at: now) != nil } == [
                false, false, true,
            ])
    }

    @Test func everyPartOfThePlaceCounts() throws {
        let cache = ProbeCache()
        cache.store(finding(), for: try place(), applicationProtocols: ["h2"], at: now)
        let others = [
            try place(host: "other.test"), try place(port: 444), try place(generation: [2]),
            try place(parent: ParentProxy(host: "parent.test", port: 3128)), try place(address: "192.0.2.2"),
        ]
        for other in others {
            #expect(cache.finding(for: other, applicationProtocols: nil, at: now) == nil, "\(other)")
        }
    }

    @Test func applicationProtocolsCountAndTheirOrderAndEnds() throws {
        let cache = ProbeCache()
        cache.store(finding(), for: try place(), applicationProtocols: ["ab", "c"], at: now)
        for other in [["c", "ab"], ["a", "bc"], ["abc"], [], ["ab"]] {
            #expect(cache.finding(for: try place(), applicationProtocols: other, at: now) == nil, "\(other)")
        }
        #expect(cache.finding(for: try place(), applicationProtocols: ["ab", "c"], at: now) != nil)
        #expect(cache.finding(for: try place(), applicationProtocols: nil, at: now) != nil)
    }

    @Test func aNewFindingTakesTheOldOnesPlace() throws {
        let cache = ProbeCache()
        cache.store(finding(version: .tls12), for: try place(), applicationProtocols: [], at: now)
        cache.store(finding(version: .tls13), for: try place(), applicationProtocols: [], at: now + 30)
        let found = try #require(cache.finding(for: place(), applicationProtocols: [], at: now + 80))
        #expect(found.version == .tls13)
    }

    @Test func listsAndPlacesAreBoundedAndTheNewestIsThere() throws {
        let cache = ProbeCache()
        let finding = finding()
        for number in 0...ProbeCache.perPlace {
            cache.store(finding, for: try place(), applicationProtocols: ["\(number)"], at: now)
        }
        #expect(cache.finding(for: try place(), applicationProtocols: ["0"], at: now) == nil)
        #expect(cache.finding(for: try place(), applicationProtocols: ["\(ProbeCache.perPlace)"], at: now) != nil)

        let places = try (0..<ProbeCache.maximumPlaces + 50).map { try place(host: "\($0).test") }
        for place in places { cache.store(finding, for: place, applicationProtocols: [], at: now) }
        let kept = places.count { cache.finding(for: $0, applicationProtocols: [], at: now) != nil }
        #expect(kept <= ProbeCache.maximumPlaces && kept > ProbeCache.maximumPlaces - 50, "\(kept)")
        let last = try #require(places.last)
        #expect(cache.finding(for: last, applicationProtocols: [], at: now) != nil)
    }
}
