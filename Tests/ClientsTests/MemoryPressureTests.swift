import Testing

@testable import PinproxyClients

@Suite struct MemoryPressureTests {
    /// Each level begins at its mark, and ends somewhat lower.
    @Test func levelsDoNotComeAndGo() {
        let pressure = MemoryPressure()
        func level(at share: Int) -> MemoryPressure.Level {
            pressure.measure { MemoryUse(used: share, limit: 1000) }.level
        }
        let walk: [(Int, MemoryPressure.Level)] = [
            (0, .none), (849, .none), (850, .short), (821, .short), (819, .none), (930, .spent), (901, .spent),
            (899, .short), (1200, .spent), (100, .none),
        ]
        for (share, expected) in walk { #expect(level(at: share) == expected, "\(share)") }
        #expect(!pressure.measure { nil }.isAnother && pressure.use == nil)
    }

    /// Work that begins claims its memory until the measurement after its end.
    @Test func whatBeginsClaimsItsMemory() {
        let pressure = MemoryPressure()
        let megabyte = 1 << 20
        func measure() -> MemoryPressure.Level {
            pressure.measure { MemoryUse(used: 50 * megabyte, limit: 100 * megabyte) }.level
        }
        #expect(pressure.admitsConnection)
        #expect(measure() == .none && pressure.admitsConnection)
        var claims = Claims()
        while pressure.admitsConnection, claims.count < 2000 { claims.add(MemoryClaim(on: pressure)) }
        // 43 MiB of 64 KiB each.
        #expect(claims.count == 687)
        #expect(measure() == .short && !pressure.admitsConnection && pressure.use?.used == 50 * megabyte)
        claims.drop()
        #expect(!pressure.admitsConnection)
        #expect(measure() == .none && pressure.admitsConnection)
    }

    /// With plenty left no request claims memory; with less, each does until the next measurement.
    @Test func requestsClaimTheirsWhereLittleIsLeft() {
        let pressure = MemoryPressure()
        let megabyte = 1 << 20
        func measure(_ used: Int) { _ = pressure.measure { MemoryUse(used: used * megabyte, limit: 100 * megabyte) } }
        measure(69)
        for _ in 0..<10_000 where !pressure.admitsRequest() { Issue.record("refused") }
        for _ in 0..<2 {
            measure(70)
            #expect((0..<10_000).count { _ in pressure.admitsRequest() } == 367)
        }
        measure(93)
        #expect(!pressure.admitsRequest())
    }

    private struct Claims: ~Copyable {
        private final class Link {
            let claim: MemoryClaim
            let next: Link?

            init(_ claim: consuming MemoryClaim, _ next: Link?) {
                self.claim = claim
                self.next = next
            }
        }

        private var last: Link?
        private(set) var count = 0

        mutating func add(_ claim: consuming MemoryClaim) {
            last = Link(claim, last)
            count += 1
        }

        mutating func drop() { last = nil }
    }
}
