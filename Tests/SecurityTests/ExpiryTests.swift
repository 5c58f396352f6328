import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySecurity

/// Pins with an expiry, judged before it, at it and after it.
@Suite struct ExpiryTests {
    private static let now = Chains.now

    private func policy(
        _ pins: [Pin], expires: UnixTime, _ action: OnExpiry, enforcement: Enforcement = .enforce
    ) -> SecurityPolicy {
        SecurityPolicy(
            mode: .publicKey, pins: PinSet(pins), enforcement: enforcement,
            expiry: PinExpiry(date: expires, action: action))
    }

    @Test(arguments: OnExpiry.allCases, [-1, 0, 1] as [UnixTime])
    func aWrongPin(_ action: OnExpiry, _ sinceExpiry: UnixTime) throws {
        let chains = try Chains()
        let policy = policy([try Pin(text: wrongPin, for: .publicKey)], expires: Self.now - sinceExpiry, action)
        let verdict = policy.evaluate(
            try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        let hasExpired = sinceExpiry >= 0
        #expect(verdict.isAccepted == (hasExpired && action == .report))
        #expect((verdict.report != nil) == verdict.isAccepted)
        switch verdict.refusal?.reason {
        case .expired?: #expect(hasExpired && action == .deny)
        case .pinMismatch?: #expect(!hasExpired || action == .enforce)
        default: #expect(verdict.isAccepted)
        }
    }

    @Test(arguments: OnExpiry.allCases, [-1, 0] as [UnixTime])
    func aRightPin(_ action: OnExpiry, _ sinceExpiry: UnixTime) throws {
        let chains = try Chains()
        let policy = policy([try chains.leaf.keyPin()], expires: Self.now - sinceExpiry, action)
        let verdict = policy.evaluate(
            try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now)
        #expect(verdict.isAccepted == !(sinceExpiry >= 0 && action == .deny))
        #expect(verdict.isAccepted == (verdict.matchedPin != nil))
        // A verdict accepted before expiry isn't used after it, if the pins then deny.
        if verdict.isAccepted { #expect((verdict.validUntil == Self.now + 1) == (action == .deny)) }
    }

    @Test func whatTheAnchorsRefuseStaysRefusedAfterThePinsExpired() throws {
        let chains = try Chains()
        let policy = policy([try chains.leaf.keyPin()], expires: Self.now - 1, .report)
        let verdict = policy.evaluate(
            try chains.stranger.presented(), host: Chains.host, anchors: try chains.anchors, at: Self.now)
        #expect(verdict.refusal?.kind == "trust: unknownIssuer")
    }

    @Test func theRefusalTellsWhatToDo() throws {
        let chains = try Chains()
        let policy = policy([try chains.leaf.keyPin()], expires: Self.now - 1, .deny)
        let refusal = try #require(
            policy.evaluate(try chains.presented, host: Chains.host, anchors: try chains.anchors, at: Self.now).refusal)
        #expect(refusal.title == "Expired pins for api.test")
        #expect(refusal.isPinFailure)
        #expect(refusal.details.contains("expired 2029-12-31"))
        #expect(refusal.details.contains("pinproxy pin api.test"))
    }

    @Test func policiesThatEndInOtherWaysAreToldApart() throws {
        let pins = [try Pin(text: wrongPin, for: .publicKey)]
        let digests = [
            policy(pins, expires: 1, .deny).digest, policy(pins, expires: 2, .deny).digest,
            policy(pins, expires: 1, .report).digest, SecurityPolicy(mode: .publicKey, pins: PinSet(pins)).digest,
        ]
        #expect(Set(digests).count == digests.count)
    }

    @Test(
        arguments: [
            ("2027-06-30", 1_814_313_600), ("2027-06-30T12:30:15Z", 1_814_358_615),
            ("2027-06-30t12:30:15z", 1_814_358_615),
            ("2027-06-30 12:30:15+02:00", 1_814_351_415), ("2027-06-30T12:30:15-01:30", 1_814_364_015),
            ("2028-02-29", 1_835_395_200), ("1969-12-31", -86_400),
            ("2027-02-29", nil), ("2027-13-01", nil), ("2027-00-10", nil), ("2027-06-31", nil), ("27-06-30", nil),
            ("2027-6-30", nil), ("2027-06-30T24:00:00Z", nil), ("2027-06-30T12:30:15", nil),
            ("2027-06-30T12:30:15.5Z", nil),
            ("2027-06-30T12:30:15+24:00", nil), ("30.06.2027", nil), ("", nil), ("tomorrow", nil), ("２０２７-06-30", nil),
            (" 2027-06-30", nil), ("2027-06-30\n", nil),
        ] as [(String, UnixTime?)])
    func dates(_ text: String, _ expected: UnixTime?) {
        #expect(DateText.parse(text) == expected)
    }
}
