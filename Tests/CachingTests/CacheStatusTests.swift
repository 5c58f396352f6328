import PinproxyHTTPWire
import Testing

@testable import PinproxyCaching

@Suite struct CacheStatusTests {
    @Test func itReadsAsRFC9211Has() {
        var status = CacheStatus(.ask(.stale))
        status.forwardStatus = 304
        status.isStored = true
        status.rest = 60
        #expect(status.text == "pinproxy; fwd=stale; ttl=60; fwd-status=304; stored")
        status = CacheStatus(.stale(.client))
        status.rest = -5
        #expect(status.text == "pinproxy; hit; ttl=-5")
        #expect(CacheStatus(.unavailable).text == "pinproxy; detail=only-if-cached")
    }
}
