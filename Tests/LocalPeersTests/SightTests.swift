import Testing

@testable import PinproxyLocalPeers

@Suite struct SightTests {
    private func sight(_ capabilities: String, isInitial: Bool = true) -> Sight {
        Sight.of(
            status: "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t\(capabilities)\nCapBnd:\t0\n", user: 7,
            isInitialNamespace: isInitial)
    }

    @Test func needsTheCapabilitiesInTheFirstNamespace() {
        #expect(sight("000001ffffffffff") == .everything)
        #expect(sight("0000000000080004") == .everything)
        #expect(sight("0000000000080002") == .everything)
        #expect(sight("0000000000080000") == .own(7))
        #expect(sight("0000000000000006") == .own(7))
        #expect(sight("0000000000000000") == .own(7))
        #expect(sight("fffffffffff7ffff") == .own(7))
        #expect(sight("000001ffffffffff", isInitial: false) == .own(7))
        #expect(Sight.of(status: "", user: 7, isInitialNamespace: true) == .own(7))
        #expect(Sight.own(7).covers(7) && !Sight.own(7).covers(8) && Sight.everything.covers(8))
    }

    @Test func knowsTheFirstNamespaceByItsMap() {
        #expect(UserNamespace.isComplete(map: "         0          0 4294967295\n"))
        for map in [
            "", "0 0 1\n", "0 1000 1\n", "0 0 4294967294\n", "0 0 4294967295\n1 1 1\n", "0 100000 4294967295\n",
        ] {
            #expect(!UserNamespace.isComplete(map: map), "\(map)")
        }
    }
}
