import PinproxyEventLoop
import Testing

@testable import PinproxyReachability

@Suite struct StatusFilterTests {
    private static let eth0 = NetworkLink(name: "eth0", index: 2, kind: .wired)
    private static let wlan0 = NetworkLink(name: "wlan0", index: 3, kind: .wireless)
    private static let wired = ReachabilityStatus.reachable([
        NetworkPath(link: eth0, gateway: "192.0.2.1", source: "192.0.2.7")
    ])
    private static let wireless = ReachabilityStatus.reachable([
        NetworkPath(link: wlan0, gateway: "192.0.2.1", source: "192.0.2.7")
    ])
    private static let down = ReachabilityStatus.notReachable(.noLink)

    private func at(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: (10_000 + milliseconds) * 1_000_000)
    }

    @Test func theFirstStatusPassesAtOnce() {
        var filter = StatusFilter()
        #expect(filter.observed(.unknown, at: at(0)) == .same)
        #expect(filter.observed(Self.down, at: at(0)) == .changed(from: .unknown))
        #expect(filter.current == Self.down)
        #expect(filter.observed(Self.down, at: at(1)) == .same)
    }

    @Test func aChangeHasToHold() {
        var filter = StatusFilter(current: Self.wired)
        #expect(filter.observed(Self.down, at: at(0)) == .unsettled(until: at(200)))
        #expect(filter.observed(Self.down, at: at(150)) == .unsettled(until: at(200)))
        #expect(filter.current == Self.wired)
        #expect(filter.observed(Self.down, at: at(200)) == .changed(from: Self.wired))
        #expect(filter.observed(Self.down, at: at(201)) == .same)
    }

    @Test func aLinkThatReturnsInTimeWasNeverAway() {
        var filter = StatusFilter(current: Self.wired)
        #expect(filter.observed(Self.down, at: at(0)) == .unsettled(until: at(200)))
        #expect(filter.observed(Self.wired, at: at(199)) == .same)
        #expect(filter.observed(Self.down, at: at(300)) == .unsettled(until: at(500)))
    }

    @Test func whatNeverSettlesIsToldAfterTwoSeconds() {
        var filter = StatusFilter(current: Self.wired)
        for step in 0..<20 {
            let status = step % 2 == 0 ? Self.down : Self.wireless
            guard case .unsettled = filter.observed(status, at: at(UInt64(step) * 100)) else {
                Issue.record("told at step \(step)")
                return
            }
        }
        #expect(filter.observed(Self.down, at: at(2000)) == .changed(from: Self.wired))
    }

    @Test func anotherReasonIsNoChange() {
        var filter = StatusFilter(current: Self.down)
        #expect(filter.observed(.notReachable(.noDefaultRoute), at: at(0)) == .refined)
        #expect(filter.current == .notReachable(.noDefaultRoute))
    }

    /// Requests are refused without a network, even on a machine that never had a path to the internet.
    @Test func thatNothingCanBeReachedAnyMoreHasToHold() {
        for isolation in [UnreachableReason.noLink, .noAddress] {
            var filter = StatusFilter(current: .notReachable(.noDefaultRoute))
            #expect(filter.observed(.notReachable(isolation), at: at(0)) == .unsettled(until: at(200)))
            #expect(filter.observed(.notReachable(.noDefaultRoute), at: at(100)) == .same)
            #expect(filter.current == .notReachable(.noDefaultRoute))
            #expect(filter.observed(.notReachable(isolation), at: at(300)) == .unsettled(until: at(500)))
            #expect(filter.observed(.notReachable(isolation), at: at(500)) == .refined)
            #expect(filter.current == .notReachable(isolation))
            // Changing from there to another reason, or back to a network, loses nothing if it is immediate.
            #expect(
                filter.observed(.notReachable(isolation == .noLink ? .noAddress : .noLink), at: at(501)) == .refined)
            #expect(filter.observed(.notReachable(.noDefaultRoute), at: at(502)) == .refined)
        }
    }

    @Test func anotherReasonBeforeDoesNotShortenIt() {
        var filter = StatusFilter(current: Self.wired)
        #expect(filter.observed(.notReachable(.noDefaultRoute), at: at(0)) == .unsettled(until: at(200)))
        #expect(filter.observed(Self.down, at: at(190)) == .unsettled(until: at(390)))
        #expect(filter.observed(.notReachable(.noDefaultRoute), at: at(250)) == .unsettled(until: at(390)))
    }

    @Test func aFurtherPathIsNoChangeButALostOneIs() throws {
        let first = try #require(Self.wired.path)
        let second = NetworkPath(link: Self.eth0, gateway: "fe80::1", source: "2001:db8::/64")
        var filter = StatusFilter(current: Self.wired)
        #expect(filter.observed(.reachable([first, second]), at: at(0)) == .refined)
        #expect(filter.observed(.reachable([second, first]), at: at(1)) == .refined)
        #expect(filter.observed(.reachable([second]), at: at(2)) == .unsettled(until: at(202)))
        #expect(filter.observed(.reachable([second]), at: at(202)) == .changed(from: .reachable([second, first])))
    }

    @Test func anotherGatewayOrAddressIsAChange() {
        for (gateway, source) in [("192.0.2.254", "192.0.2.7"), ("192.0.2.1", "192.0.2.8")] {
            var filter = StatusFilter(current: Self.wired)
            let status = ReachabilityStatus.reachable([NetworkPath(link: Self.eth0, gateway: gateway, source: source)])
            #expect(filter.observed(status, at: at(0)) == .unsettled(until: at(200)))
        }
    }
}
