import Foundation
import Glibc
import PinproxyReachability
import Testing

@testable import PinproxyEventLoop
@testable import PinproxySession

@Suite struct NetworkOutlookTests {
    private static let wired = reachable("eth0", .wired)
    private static let cellular = reachable("wwan0", .cellular)

    private static func reachable(_ name: String, _ kind: LinkKind) -> ReachabilityStatus {
        .reachable([NetworkPath(link: NetworkLink(name: name, index: 2, kind: kind), source: "192.0.2.7")])
    }

    private func outlook(_ machine: ReachabilityStatus, _ hosts: [String: ReachabilityStatus] = [:]) -> NetworkOutlook {
        NetworkOutlook([(.any, machine)] + hosts.map { (.host($0.key), $0.value) })
    }

    @Test func nothingIsRefusedUnlessAllIsCutOff() {
        #expect(NetworkOutlook().obstacle(to: "a.test") == nil)
        #expect(outlook(.unknown).obstacle(to: "a.test") == nil)
        #expect(outlook(Self.wired).obstacle(to: "a.test") == nil)
        #expect(outlook(.notReachable(.noDefaultRoute)).obstacle(to: "a.test") == nil)
        #expect(outlook(.notReachable(.noLink)).obstacle(to: "a.test") == .noLink)
        #expect(outlook(.notReachable(.noAddress)).obstacle(to: "a.test") == .noAddress)
    }

    @Test func aHostThatIsFollowedIsJudgedByItsOwnStatus() {
        let statuses: [String: ReachabilityStatus] = [
            "a.test": .notReachable(.forbidden("prohibit")), "b.test": Self.wired, "c.test": .unknown,
            "d.test": .notReachable(.noSuchHost("d.test: no such host")), "192.0.2.1": .notReachable(.noRoute),
        ]
        let up = outlook(Self.wired, statuses)
        #expect(up.obstacle(to: "a.test") == .forbidden("prohibit"))
        #expect(up.obstacle(to: "192.0.2.1") == .noRoute)
        for host in ["b.test", "c.test", "d.test", "e.test"] { #expect(up.obstacle(to: host) == nil) }
        let down = outlook(.notReachable(.noLink), statuses)
        #expect(down.obstacle(to: "b.test") == nil)
        #expect(down.obstacle(to: "c.test") == .noLink)
    }

    @Test func knowsWhichHostsGoOverCellularLinks() {
        #expect(!outlook(Self.wired).isViaWWAN)
        #expect(outlook(Self.cellular).cellularLink(to: "a.test") == "wwan0")
        let mixed = outlook(Self.cellular, ["a.test": Self.wired, "b.test": .unknown])
        #expect(mixed.isViaWWAN)
        #expect(mixed.cellularLink(to: "a.test") == nil)
        #expect(mixed.cellularLink(to: "b.test") == "wwan0")
        let other = outlook(Self.wired, ["a.test": Self.cellular])
        #expect(other.isViaWWAN)
        #expect(other.cellularLink(to: "a.test") == "wwan0")
        #expect(other.cellularLink(to: "b.test") == nil)
    }

    // MARK: Attempts

    /// A remote address isn't dialled, nor is a silent name server awaited.
    @Test(arguments: ["192.0.2.1", "a.test"]) func anAttemptEndsAtOnceWithoutANetwork(_ host: String) throws {
        let silent = try Silent()
        let bench = try Workbench(nameServer: "127.0.0.1:\(silent.port)")
        bench.connector.network.outlook = outlook(.notReachable(.noLink))
        guard case .noNetwork(.noLink) = try bench.failure(to: bench.target(port: 443, host: host)) else {
            throw Unexpected(text: "another failure")
        }
    }

    @Test func thisMachinesOwnAddressesAreDialledWithoutANetwork() throws {
        let authority = try OriginAuthority.shared.get()
        let context = try OriginAuthority.context()
        let peer = try Peer { authority.serve($0, with: context, greeting: "hello") }
        let bench = try Workbench()
        bench.connector.network.outlook = outlook(.notReachable(.noLink))
        for host in ["127.0.0.1", "localhost"] {
            let connection = try bench.connect(to: bench.target(port: peer.port, host: host)).get()
            #expect(bench.receive(on: connection) == "hello")
            connection.close()
        }
    }

    /// While the internet is unreachable, that is given as the reason for failed look-ups.
    @Test func aLookUpThatFailsIsExplained() throws {
        let silent = try Silent()
        let bench = try Workbench(nameServer: "127.0.0.1:\(silent.port)")
        let target = try bench.target(port: 443, host: "a.test")
        guard case .timedOut(.nameLookup) = try bench.failure(to: target, timeouts: .short) else {
            throw Unexpected(text: "another failure")
        }
        bench.connector.network.outlook = outlook(.notReachable(.noDefaultRoute))
        guard case .noNetwork(.noDefaultRoute) = try bench.failure(to: target, timeouts: .short) else {
            throw Unexpected(text: "another failure")
        }
    }

    /// A name server that takes questions and never answers.
    private final class Silent {
        let socket: CInt
        let port: UInt16

        init() throws {
            socket = Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
            let loopback = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
            let raw = socket
            try #require(loopback.withSockaddr { bind(raw, $0, $1) } == 0)
            port = try #require(Socket.localAddress(raw)).port
        }

        deinit { close(socket) }
    }
}
