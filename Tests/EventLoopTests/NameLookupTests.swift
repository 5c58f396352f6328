import Testing

@testable import EventLoop

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

    @Test func `AAAA first: begin at once, and end with both`() {
        var lookup = started("a")
        #expect(lookup.received(found(six, 9), .ipv6) == .begin(six))
        #expect(lookup.received(found(four, 5), .ipv4) == .end(found(six + four, 5)))
    }

    @Test func `A first: AAAA has fifty milliseconds`() {
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
    func `what fails of one family takes nothing from the other`(error: ResolutionError) {
        var lookup = started("a")
        #expect(lookup.received(.failed(error), .ipv6) == .wait)
        #expect(lookup.received(found(four), .ipv4) == .end(found(four)))
        lookup = started("a")
        #expect(lookup.received(.failed(error), .ipv4) == (error == .notFound("a") ? .startDelay : .wait))
        #expect(lookup.received(found(six), .ipv6) == .end(found(six)))
    }

    @Test func `addresses of a family that wasn't asked for don't count`() {
        var lookup = started("a")
        #expect(lookup.received(found(four), .ipv6) == .wait)
        #expect(lookup.received(found(six + four), .ipv4) == .end(found(four)))
    }

    /// A search list must not give one family of a name and the other of another.
    @Test func `the next name is asked for only if this one has neither family`() {
        var lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.noAddresses("a")), .ipv6)
        #expect(lookup.received(found(four), .ipv4) == .end(found(four)))

        lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.noAddresses("a")), .ipv6)
        #expect(lookup.received(.failed(.notFound("a")), .ipv4) == .ask("a.corp.test"))
        #expect(lookup.received(found(six), .ipv6) == .begin(six))
        #expect(lookup.received(.failed(.noAddresses("a")), .ipv4) == .end(found(six)))
    }

    @Test func `a failure of the moment ends it: whether a later name would be right isn't known`() {
        var lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.timedOut("a")), .ipv6)
        #expect(lookup.received(.failed(.notFound("a")), .ipv4) == .end(.failed(.timedOut("a"))))
    }

    @Test func `a name that exists without addresses isn't one that doesn't exist`() {
        var lookup = started("a", "a.corp.test")
        _ = lookup.received(.failed(.noAddresses("a")), .ipv4)
        #expect(lookup.received(.failed(.noAddresses("a")), .ipv6) == .ask("a.corp.test"))
        #expect(lookup.received(.failed(.notFound("b")), .ipv4) == .startDelay)
        #expect(lookup.delayPassed() == .end(.failed(.noAddresses("a"))))
    }

    @Test func `that the name doesn't exist is believed of A after the delay`() {
        var lookup = started("a")
        #expect(lookup.received(.failed(.notFound("a")), .ipv4) == .startDelay)
        #expect(lookup.delayPassed() == .end(.failed(.notFound("a"))))
    }
}
