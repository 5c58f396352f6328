import Testing

@testable import PinproxyEventLoop

@Suite struct NameLookupTests {
    private typealias Reply = NameLookup.Reply

    private let four: [IPAddress]
    private let six: [IPAddress]

    init() throws {
        four = [try #require(IPAddress("192.0.2.1"))]
        six = [try #require(IPAddress("2001:db8::1"))]
    }

    private func found(_ addresses: [IPAddress], _ timeToLive: Int = 60) -> Reply {
        .addresses(addresses, timeToLive: timeToLive)
    }

    private func started(_ candidates: String...) -> NameLookup {
        var lookup = NameLookup("a", candidates: candidates)
        #expect(lookup.start() == .ask(candidates[0]))
        return lookup
    }

    @Test func aaaaFirstBeginAtOnceAndEndWithBoth() {
        var lookup = started("a")
        #expect(lookup.received(found(six, 9), .ipv6) == .begin(six))
        #expect(lookup.received(found(four, 5), .ipv4) == .end(found(six + four, 5)))
    }

    @Test func aFirstAAAAHasFiftyMilliseconds() {
        var lookup = started("a")
        #expect(lookup.received(found(four), .ipv4) == .startDelay)
        #expect(lookup.delayPassed() == .begin(four))
        #expect(lookup.delayPassed() == .wait)
        #expect(lookup.received(found(six), .ipv6) == .end(found(six + four)))

        lookup = started("a")
        _ = lookup.received(found(four), .ipv4)
        #expect(lookup.received(found(six), .ipv6) == .end(found(six + four)))
        #expect(lookup.delayPassed() == .wait)
    }

    @Test(arguments: [ResolutionError.noAddresses("a"), .timedOut("a"), .notFound("a"), .cancelled])
    func whatFailsOfOneFamilyTakesNothingFromTheOther(error: ResolutionError) {
        var lookup = started("a")
        #expect(lookup.received(.failed(error), .ipv6) == .wait)
        #expect(lookup.received(found(four), .ipv4) == .end(found(four)))
        lookup = started("a")
        #expect(lookup.received(.failed(error), .ipv4) == (error == .notFound("a") ? .startDelay : .wait))
        #expect(lookup.received(found(six), .ipv6) == .end(found(six)))
    }

    @Test func addressesOfAFamilyThatWasntAskedForDontCount() {
        var lookup = started("a")
        #expect(lookup.received(found(four), .ipv6) == .wait)
        #expect(lookup.received(found(six + four), .ipv4) == .end(found(four)))
    }

    /// A search list must not mix families: one from one name, the other from another.
    @Test func theNextNameIsAskedForOnlyIfThisOneHasNeitherFamily() {
        var lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.noAddresses("a")), .ipv6)
        #expect(lookup.received(found(four), .ipv4) == .end(found(four)))

        lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.noAddresses("a")), .ipv6)
        #expect(lookup.received(.failed(.notFound("a")), .ipv4) == .ask("a.corp.test"))
        #expect(lookup.received(found(six), .ipv6) == .begin(six))
        #expect(lookup.received(.failed(.noAddresses("a")), .ipv4) == .end(found(six)))
    }

    @Test func aFailureOfTheMomentEndsItWhetherALaterNameWouldBeRightIsntKnown() {
        var lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.timedOut("a")), .ipv6)
        #expect(lookup.received(.failed(.notFound("a")), .ipv4) == .end(.failed(.timedOut("a"))))
    }

    @Test func aNameThatExistsWithoutAddressesIsntOneThatDoesntExist() {
        var lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.noAddresses("a")), .ipv4)
        #expect(lookup.received(.failed(.noAddresses("a")), .ipv6) == .ask("a.corp.test"))
        #expect(lookup.received(.failed(.notFound("b")), .ipv4) == .startDelay)
        #expect(lookup.delayPassed() == .end(.failed(.noAddresses("a"))))
    }

    @Test func thatTheNameDoesntExistIsBelievedOfAAfterTheDelay() {
        var lookup = started("a")
        #expect(lookup.received(.failed(.notFound("a")), .ipv4) == .startDelay)
        #expect(lookup.delayPassed() == .end(.failed(.notFound("a"))))
    }
}
