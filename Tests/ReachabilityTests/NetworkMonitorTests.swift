import Foundation
import PinproxyEventLoop
import Synchronization
import Testing

@testable import PinproxyReachability

/// Against the kernel: each test has its own network, which `ip` changes.
@Suite(.enabled(if: NetworkNamespace.isAvailable, NetworkNamespace.why))
struct NetworkMonitorTests {
    private func texts(_ change: ReachabilityChange) -> String {
        "\(change.target): \(change.from) → \(change.to) (\(change.to.path?.link.name ?? "–"), \(change.to.reason))"
    }

    @Test func aMonitorMayStartBeforeThereIsAnyLink() throws {
        let namespace = try NetworkNamespace()
        let network = try FollowedNetwork(in: namespace)
        #expect(try texts(network.next()) == "any: unknown → not-reachable (–, no network link is up)")
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add default via 192.0.2.1"])
        #expect(
            try texts(network.next()) == "any: not-reachable → via-wired (up0, route via 192.0.2.1 from 192.0.2.7)")
    }

    @Test func addressesAndRoutesComeAndGo() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        let network = try FollowedNetwork(in: namespace)
        #expect(try network.next().to == .notReachable(.noAddress))
        try namespace.ip("address add 192.0.2.7/24 dev up0")
        try namespace.ip("route add default via 192.0.2.1")
        #expect(try network.next().to.isReachable)
        try namespace.ip("route del default")
        #expect(try network.next().to == .notReachable(.noDefaultRoute))
        try namespace.ip("route add default via 192.0.2.254")
        #expect(try network.next().to.path?.gateway == "192.0.2.254")
        try namespace.ip("address del 192.0.2.7/24 dev up0")
        #expect(try network.next().to == .notReachable(.noAddress))
        #expect(network.left.isEmpty)
    }

    /// By the other end, so that the carrier is lost, and by this one.
    @Test(arguments: ["far0", "up0"]) func linksGoDownAndUp(_ end: String) throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add default via 192.0.2.1"])
        let network = try FollowedNetwork(in: namespace)
        #expect(try network.next().to.isReachable)
        try namespace.ip("link set \(end) down")
        #expect(try network.next().to == .notReachable(.noLink))
        // The kernel drops the routes of a link that is set down.
        try namespace.ip(batch: ["link set \(end) up", "route replace default via 192.0.2.1"])
        #expect(try network.next().to.isReachable)
    }

    @Test func ipv6AloneIsEnough() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        let network = try FollowedNetwork(in: namespace)
        _ = try network.next()
        // Duplicate address detection: the address can't be sent from until it ends.
        try namespace.ip(batch: ["address add 2001:db8:0:1::7/64 dev up0", "route add default via 2001:db8:0:1::1"])
        #expect(
            try texts(network.next())
                == "any: not-reachable → via-wired (up0, route via 2001:db8:0:1::1 from 2001:db8:0:1::/64)")
    }

    @Test func aSecondLinkTakesOver() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink(0)
        try namespace.addUplink(1)
        try namespace.ip(batch: [
            "address add 192.0.2.7/24 dev up0", "address add 198.51.100.7/24 dev up1",
            "route add default via 192.0.2.1 metric 1", "route add default via 198.51.100.1 metric 2",
        ])
        let network = try FollowedNetwork(in: namespace)
        #expect(try network.next().to.path?.link.name == "up0")
        try namespace.ip("link set up0 down")
        let change = try network.next()
        #expect(change.from.path?.link.name == "up0")
        #expect(change.to.path?.link.name == "up1")
        #expect(change.to.path?.source == "198.51.100.7")
    }

    /// This kernel may have neither kind of link, so their marks are put beside a wired link's name.
    @Test func wirelessAndCellularLinksAreToldByTheirMarks() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sysfs-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        for (path, text) in [("up0/phy80211/x", ""), ("up1/uevent", "DEVTYPE=wwan\n")] {
            let file = folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let namespace = try NetworkNamespace()
        try namespace.addUplink(0)
        try namespace.addUplink(1)
        try namespace.ip(batch: [
            "address add 192.0.2.7/24 dev up0", "address add 198.51.100.7/24 dev up1",
            "route add default via 192.0.2.1 metric 1", "route add default via 198.51.100.1 metric 2",
        ])
        let network = try FollowedNetwork(in: namespace, sysfs: folder.path)
        let first = try network.next().to
        #expect("\(first)" == "via-wireless")
        #expect(first.isReachableViaWiFi)
        try namespace.ip("link set up0 down")
        let second = try network.next().to
        #expect("\(second)" == "via-wwan")
        #expect(second.isReachableViaWWAN)
    }

    @Test func kindsOfLinksThatThisKernelHas() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        try namespace.ip(batch: [
            "link add br0 type bridge", "link set far0 down", "link set up0 master br0", "link set far0 up",
            "link set br0 up",
            "address add 192.0.2.7/24 dev br0", "route add default via 192.0.2.1",
        ])
        let network = try FollowedNetwork(in: namespace)
        _ = try network.changes { "\($0)" == "via-bridge" }
        try namespace.ip(batch: [
            "link add tun0 type vxlan id 7 remote 192.0.2.9 dstport 4789 dev br0", "link set tun0 up",
            "address add 10.9.8.7/24 dev tun0", "route replace default via 10.9.8.1",
        ])
        let last = try network.changes { "\($0)" == "via-tunnel" }.last
        #expect(last?.to.path?.link.name == "tun0")
    }

    @Test func addressesHaveTheirOwnStatus() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0"])
        let near = try #require(ReachabilityTarget(address: "192.0.2.1"))
        let far = try #require(ReachabilityTarget(address: "203.0.113.5"))
        let own = try #require(ReachabilityTarget(address: "127.0.0.1"))
        let network = try FollowedNetwork([.any, near, far, own], in: namespace)
        let first = try (0..<4).map { _ in try network.next() }.map(texts)
        #expect(
            first == [
                "any: unknown → not-reachable (–, no default route)",
                "192.0.2.1: unknown → via-wired (up0, directly connected from 192.0.2.7)",
                "203.0.113.5: unknown → not-reachable (–, no route)",
                "127.0.0.1: unknown → via-loopback (lo, within this machine)",
            ])
        try namespace.ip("route add 203.0.113.0/24 via 192.0.2.1")
        #expect(
            try texts(network.next())
                == "203.0.113.5: not-reachable → via-wired (up0, route via 192.0.2.1 from 192.0.2.7)")
        for type in ["blackhole", "prohibit", "unreachable"] {
            try namespace.ip("route add \(type) 203.0.113.5/32")
            #expect(try network.next().to == .notReachable(.forbidden(type)))
            try namespace.ip("route del \(type) 203.0.113.5/32")
            #expect(try network.next().to.isReachable)
        }
        // By a rule instead of a table.
        try namespace.ip("rule add to 203.0.113.5 prohibit")
        #expect(try network.next().to == .notReachable(.forbidden("prohibit")))
        #expect(network.left.isEmpty)
    }

    @Test func aNameFollowsItsAddresses() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add 203.0.113.0/24 via 192.0.2.1"])
        let names = FollowedNetwork.Names(["api.test": ["2001:db8::5", "203.0.113.5"]])
        let network = try FollowedNetwork([.host("api.test"), .host("gone.test")], in: namespace, names: names)
        let first = try [network.next(), network.next()].map(texts).sorted()
        #expect(
            first == [
                "api.test: unknown → via-wired (up0, route via 192.0.2.1 from 192.0.2.7)",
                "gone.test: unknown → not-reachable (–, gone.test: no such host)",
            ])
        // The answer changes with the network: another address is added, which alone causes a new look-up.
        names.answers.withLock { $0["api.test"] = .found([IPAddress("198.51.100.5")].compactMap { $0 }) }
        try namespace.ip("address add 192.0.2.8/24 dev up0")
        #expect(try texts(network.next()) == "api.test: via-wired → not-reachable (–, no route)")
        try namespace.ip("route add 198.51.100.0/24 via 192.0.2.1")
        #expect(try network.next().to.isReachable)
        // Silent name servers change nothing.
        names.answers.withLock { $0["api.test"] = .failed }
        names.answers.withLock { $0["gone.test"] = .found([IPAddress("127.0.0.1")].compactMap { $0 }) }
        network.perform { $0.lookUpNames() }
        #expect(try texts(network.next()) == "gone.test: not-reachable → via-loopback (lo, within this machine)")
        #expect(network.left.isEmpty)
    }

    @Test func aNameThatCanNotBeLookedUpIsAsTheMachine() throws {
        let namespace = try NetworkNamespace()
        let names = FollowedNetwork.Names()
        names.answers.withLock { $0["api.test"] = .failed }
        let network = try FollowedNetwork([.host("api.test")], in: namespace, names: names)
        #expect(try network.next().to == .notReachable(.noLink))
    }

    @Test func aThousandFlapsAreFewChanges() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add default via 192.0.2.1"])
        let network = try FollowedNetwork(in: namespace)
        #expect(try network.next().to.isReachable)
        var flaps: [String] = []
        for _ in 0..<1000 { flaps += ["link set up0 down", "link set up0 up", "route replace default via 192.0.2.1"] }
        let began = ContinuousClock.now
        // The last route distinguishes the end from everything in between.
        try namespace.ip(batch: flaps + ["route replace default via 192.0.2.254"])
        let duration = ContinuousClock.now - began
        let changes = try network.changes { $0.path?.gateway == "192.0.2.254" }
        // Each status lasted 200 ms, and no two consecutive ones are the same.
        #expect(changes.count <= 1 + Int(duration / .milliseconds(200)))
        for (one, next) in zip(changes, changes.dropFirst()) {
            // The reason may have changed meanwhile, which is not a change.
            #expect(one.to.covers(next.from))
            #expect(!one.to.covers(next.to))
        }
        try namespace.ip("link set up0 down")
        #expect(try network.next().to == .notReachable(.noLink))
        #expect(network.left.isEmpty)
    }

    /// While the monitor's loop is blocked, the kernel drops messages (ENOBUFS).
    @Test func lostNewsAreNoHarm() throws {
        let namespace = try NetworkNamespace()
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add default via 192.0.2.1"])
        let network = try FollowedNetwork(in: namespace)
        #expect(try network.next().to.isReachable)
        let (isStill, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        network.perform { _ in
            isStill.signal()
            mayGoOn.wait()
        }
        isStill.wait()
        var flood: [String] = []
        for number in 0..<2000 {
            flood += [
                "address add 10.0.\(number / 250).\(number % 250)/32 dev up0",
                "address del 10.0.\(number / 250).\(number % 250)/32 dev up0",
            ]
        }
        try namespace.ip(batch: flood + ["route del default"])
        mayGoOn.signal()
        #expect(try network.next().to == .notReachable(.noDefaultRoute))
        try namespace.ip("route add default via 192.0.2.254")
        #expect(try network.next().to.path?.gateway == "192.0.2.254")
    }

    @Test func targetsMayChange() throws {
        let namespace = try NetworkNamespace()
        let network = try FollowedNetwork([.any], in: namespace)
        #expect(try network.next().to == .notReachable(.noLink))
        let own = try #require(ReachabilityTarget(address: "127.0.0.1"))
        network.perform { $0.follow([own, .any]) }
        #expect(try network.next().target == own)
        network.perform { $0.follow([.any]) }
        try namespace.addUplink()
        try namespace.ip(batch: ["address add 192.0.2.7/24 dev up0", "route add default via 192.0.2.1"])
        let change = try network.next()
        #expect(change.target == .any)
        #expect(change.from == .notReachable(.noAddress) || change.from == .notReachable(.noLink))
    }
}
