import PinproxyEventLoop
import Testing

@testable import PinproxyReachability

@Suite struct NetworkStateTests {
    private static let up: UInt32 = 0x1 | 0x40
    private static let internet4 = NetworkState.internet[0]
    private static let internet6 = NetworkState.internet[1]

    private func link(_ index: CInt, _ name: String, flags: UInt32 = up) -> LinkRecord {
        LinkRecord(index: index, name: name, hardwareType: 1, flags: flags)
    }

    private func ip(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    /// eth0 is up and has an IPv4 address; each test adds what it needs.
    private func wired() -> NetworkState {
        var state = NetworkState()
        state.links = [
            1: LinkRecord(index: 1, name: "lo", hardwareType: 772, flags: Self.up | 0x8), 2: link(2, "eth0"),
            3: link(3, "wwan0"),
        ]
        state.addresses = [AddressRecord(link: 2, isIPv6: false, scope: 0, flags: 0x80)]
        state.marks[3] = LinkMarks(deviceType: "wwan")
        return state
    }

    private func route(
        _ link: CInt, via gateway: String? = nil, from source: String?, type: UInt8 = 1
    )
        -> NetworkState.RouteAnswer
    {
        .route(
            RouteRecord(
                type: type, link: link, gateway: gateway.flatMap { IPAddress($0) },
                source: source.flatMap { IPAddress($0) }))
    }

    private func eth0(_ gateway: String?, _ source: String) -> NetworkPath {
        NetworkPath(link: NetworkLink(name: "eth0", index: 2, kind: .wired), gateway: gateway, source: source)
    }

    @Test func aDefaultRouteMakesTheMachineReachable() {
        var state = wired()
        state.routes[Self.internet4] = route(2, via: "192.0.2.1", from: "192.0.2.7")
        #expect(state.machine == .reachable([eth0("192.0.2.1", "192.0.2.7")]))
        #expect(state.machine.isReachableViaWiFi)
        #expect(!state.machine.isReachableViaWWAN)
        #expect("\(state.machine)" == "via-wired")
    }

    @Test func oneFamilyIsEnough() {
        var state = wired()
        state.addresses = [AddressRecord(link: 2, isIPv6: true, scope: 0, flags: 0x80)]
        state.routes[Self.internet4] = .failed(101)
        state.routes[Self.internet6] = route(2, via: "fe80::1", from: "2001:db8:1:2:aaaa::7")
        #expect(state.machine == .reachable([eth0("fe80::1", "2001:db8:1:2::/64")]))
    }

    /// A connection might use it: that can't be ruled out.
    @Test func whatMayBeCellularIs() {
        var state = wired()
        state.routes[Self.internet4] = route(2, via: "192.0.2.1", from: "192.0.2.7")
        state.routes[Self.internet6] = route(3, from: "2001:db8::7")
        #expect(state.machine.isReachableViaWWAN)
        #expect(!state.machine.isReachableViaWiFi)
        #expect(state.machine.path?.link.name == "wwan0")
    }

    @Test func saysWhyTheMachineIsNotReachable() {
        var state = wired()
        #expect(state.machine == .notReachable(.noDefaultRoute))
        state.routes[Self.internet4] = .failed(101)
        #expect(state.machine == .notReachable(.noDefaultRoute))
        state.addresses = []
        #expect(state.machine == .notReachable(.noAddress))
        state.links[2]?.flags = 0x1
        state.links[3]?.flags = 0
        #expect(state.machine == .notReachable(.noLink))
        #expect(NetworkState().machine == .notReachable(.noLink))
    }

    /// Loopback's address, a link-local one, one that others may have, and one of a link that is down.
    @Test(arguments: [
        AddressRecord(link: 1, isIPv6: false, scope: 254, flags: 0x80),
        AddressRecord(link: 1, isIPv6: false, scope: 0, flags: 0),
        AddressRecord(link: 2, isIPv6: true, scope: 253, flags: 0x80),
        AddressRecord(link: 2, isIPv6: true, scope: 0, flags: 0x40),
        AddressRecord(link: 2, isIPv6: true, scope: 0, flags: 0x8),
        AddressRecord(link: 4, isIPv6: false, scope: 0, flags: 0x80),
    ])
    func addressesThatAreOfNoUse(_ address: AddressRecord) {
        var state = wired()
        state.links[4] = link(4, "eth1", flags: 0x1)
        state.addresses = [address]
        #expect(state.machine == .notReachable(.noAddress))
    }

    @Test func aLinkWithoutCarrierReachesNothing() throws {
        var state = wired()
        state.links[2]?.flags = 0x1
        let address = try ip("203.0.113.5")
        state.routes[address] = route(2, via: "192.0.2.1", from: "192.0.2.7")
        #expect(state.status(of: [address]) == .notReachable(.linkDown("eth0")))
    }

    /// The kernel reports a forbidding route as an error (IPv4, fib_errors) or by its type.
    @Test func aRouteMayForbid() throws {
        let address = try ip("203.0.113.5")
        for (answer, type) in [
            (NetworkState.RouteAnswer.failed(22), "blackhole"), (.failed(13), "prohibit"),
            (.failed(113), "unreachable"),
            (route(1, from: nil, type: 6), "blackhole"), (route(1, from: nil, type: 7), "unreachable"),
            (route(1, from: nil, type: 8), "prohibit"),
        ] {
            var state = wired()
            state.routes[address] = answer
            #expect(state.status(of: [address]) == .notReachable(.forbidden(type)))
        }
        var state = wired()
        state.routes[address] = .failed(101)
        #expect(state.status(of: [address]) == .notReachable(.noRoute))
    }

    @Test func loopbackIsReachableWhateverTheKernelSays() throws {
        for text in ["127.0.0.1", "127.8.9.1", "::1"] {
            let status = NetworkState().status(of: [try ip(text)])
            #expect(status.path?.link == NetworkLink(name: "lo", index: 1, kind: .loopback))
        }
    }

    @Test func theMachinesOwnAddressIsLoopback() throws {
        var state = wired()
        let own = try ip("192.0.2.7")
        state.routes[own] = route(1, from: "192.0.2.7", type: 2)
        #expect("\(state.status(of: [own]))" == "via-loopback")
    }

    /// The kernel installs the router's default route before duplicate address detection ends.
    @Test func aLinkLocalSourceDoesNotReachBeyondTheLink() throws {
        var state = wired()
        let (far, near) = (try ip("2001:db8::1"), try ip("fe80::1"))
        state.routes[far] = route(2, via: "fe80::1", from: "fe80::7")
        state.routes[near] = route(2, from: "fe80::7")
        #expect(state.status(of: [far]) == .notReachable(.noAddress))
        #expect(state.status(of: [near]).isReachable)
    }

    @Test func aHostIsReachableByAnyOfItsAddresses() throws {
        var state = wired()
        let (one, other) = (try ip("203.0.113.5"), try ip("2001:db8::5"))
        state.routes[one] = .failed(13)
        #expect(state.status(of: [one, other]) == .notReachable(.forbidden("prohibit")))
        state.routes[other] = route(2, from: "2001:db8::7")
        #expect(state.status(of: [one, other]).isReachable)
        #expect(state.status(of: []) == .unknown)
    }

    @Test func aVLANIsOfTheKindOfTheLinkBelow() throws {
        var state = wired()
        state.links[5] = LinkRecord(index: 5, name: "wwan0.7", hardwareType: 1, flags: Self.up, kind: "vlan", lower: 3)
        let address = try ip("203.0.113.5")
        state.routes[address] = route(5, from: "192.0.2.9")
        #expect(state.linksUsed() == [5, 3])
        #expect(state.status(of: [address]).isReachableViaWWAN)
        // Links that are below each other have no end.
        state.links[3] = LinkRecord(index: 3, name: "wwan0", hardwareType: 1, flags: Self.up, kind: "vlan", lower: 5)
        #expect(state.linksUsed() == [5, 3])
        #expect(state.status(of: [address]).isReachable)
    }

    @Test func targetsAreReadCanonically() {
        #expect(ReachabilityTarget.host("API.Example.test") == ReachabilityTarget.host("api.example.test"))
        #expect(ReachabilityTarget.host("::ffff:192.0.2.1") == ReachabilityTarget(address: "192.0.2.1"))
        #expect(ReachabilityTarget(address: "192.0.2") == nil)
        #expect("\(ReachabilityTarget.any)" == "any")
    }
}
