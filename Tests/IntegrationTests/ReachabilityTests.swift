import Foundation
import Testing

/// What the proxy does when the network goes away and returns. The tests change the network of a namespace.
@Suite(
    .enabled(if: NetworkBed.isAvailable, "needs root, unshare(1) and ip(8) to make network namespaces"),
    .timeLimit(.minutes(5)))
struct ReachabilityTests {
    @Test func requestsAreRefusedAtOnceWithoutANetworkAndGoThroughWithOne() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed)
            let first = try await network.change(1)
            #expect(first["target"] == "any")
            #expect(first["from"] == "unknown")
            #expect(first["to"] == "not-reachable")
            #expect(first["reason"] == "no network link is up")

            for url in [network.url(), "http://\(NetworkBed.name)/", "http://203.0.113.10/", "https://unknown.test/"] {
                let run = try await network.curl(url)
                #expect(run.output.contains("503"), "\(run)")
                #expect(run.output.contains("Retry-After: 5\r\n"), "\(run)")
                #expect(
                    run.output.contains(
                        "error=destination_unavailable; details=\"the network can't be reached: no network link is up\""
                    ),
                    "\(run)")
            }
            // Services on this machine need no network, whatever their names.
            let here = try await PythonPeer.origin(in: bed, chain: nil, launcher: network.besideProxy)
            for host in ["127.0.0.1", "localhost", "here.test"] {
                let run = try await network.curl("http://\(host):\(here.port)/echo")
                #expect(run.output.hasSuffix("000 200"), "\(run)")
            }

            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1")
            let second = try await network.change(2)
            #expect(second["from"] == "not-reachable")
            #expect(second["to"] == "via-wired")
            #expect(second["link"] == "up0")
            #expect(second["kind"] == "wired")
            #expect(second["reason"] == "route via 192.0.2.1 from 192.0.2.7")
            let reached = try await network.curl(network.url())
            #expect(reached.output.hasSuffix("200 200"), "\(reached)")

            try await network.setCarrier(false)
            #expect(try await network.change(3)["to"] == "not-reachable")
            let lost = try await network.curl(network.url())
            #expect(lost.output.hasSuffix("503 000"), "\(lost)")
            try await network.setCarrier(true)
            #expect(try await network.change(4)["to"] == "via-wired")
            let again = try await network.curl(network.url())
            #expect(again.output.hasSuffix("200 200"), "\(again)")
        }
    }

    @Test func readinessAndStatusTellOfTheNetwork() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed)
            func asked(_ path: String) async throws -> Run {
                try await bed.run([
                    "curl", "-sS", "-w", "%{http_code}", "--unix-socket", bed.path("proxy/state/pinproxy/control.sock"),
                    "http://localhost\(path)",
                ])
            }
            func status() async throws -> String {
                try await bed.run(
                    [ProxyProcess.executable, "status", "--config", bed.path("proxy/pinproxy.yaml")],
                    environment: ProxyProcess.environment(in: bed)
                ).output
            }
            _ = try await network.change(1)
            let cutOff = try await asked("/readyz")
            #expect(cutOff.output.contains("this machine has no network: no network link is up"), "\(cutOff)")
            #expect(cutOff.output.hasSuffix("503"), "\(cutOff)")
            let told = try await status()
            #expect(told.contains("\nnetwork: not-reachable (no network link is up)\n"), "\(told)")

            // Without a default route the machine's own networks are still served.
            try await network.addUplink()
            try await eventually("readiness") { try await asked("/readyz").output.hasSuffix("200") }
            try await network.ip("route add default via 192.0.2.1")
            _ = try await network.change(2)
            let found = try await status()
            #expect(found.contains("\nnetwork: via-wired (up0, route via 192.0.2.1 from 192.0.2.7)\n"), "\(found)")
            let json = try await asked("/status")
            #expect(
                json.output.contains("\"target\":\"any\"") || json.output.contains("\"target\" : \"any\""), "\(json)")
        }
    }

    /// A machine in a network without a route out of it.
    @Test func withoutADefaultRouteTheOwnNetworkIsReached() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed)
            try await network.addUplink()
            #expect(try await network.change(1)["to"] == "not-reachable")
            // Not refused: the link's own network is there, which the log has no line for.
            try await eventually("the origin's own address") {
                try await network.curl("-k", "https://192.0.2.1:\(network.origin.port)/echo").output.contains("502")
            }
            let beyond = try await network.curl(network.url())
            #expect(beyond.output.hasSuffix("503 000"), "\(beyond)")
            #expect(beyond.output.contains("no default route"), "\(beyond)")
            #expect(beyond.output.contains("Retry-After: 5\r\n"), "\(beyond)")
        }
    }

    @Test func anotherRouteDropsIdleConnectionsAndKeepsSessions() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed, sections: ["proxy": ["workers: 1"]])
            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1")
            _ = try await network.proxy.events.first("reachability.change") { $0["to"] == "via-wired" }
            func connections() -> [LogEvent] { network.origin.events.all("connection") }
            for _ in 0..<2 {
                let run = try await network.curl(network.url())
                #expect(run.output.hasSuffix("200 200"), "\(run)")
            }
            #expect(connections().count == 1, "the second request found the first one's connection")

            let changes = network.proxy.events.all("reachability.change").count
            try await network.ip("route replace default via 192.0.2.254")
            let change = try await network.change(changes + 1)
            #expect(change["from"] == "via-wired")
            #expect(change["to"] == "via-wired")
            #expect(change["reason"] == "route via 192.0.2.254 from 192.0.2.7")
            let run = try await network.curl(network.url())
            #expect(run.output.hasSuffix("200 200"), "\(run)")
            let second = try await network.origin.events.first("connection", number: 2)
            #expect(second["resumed"] == "1" || second["resumed"] == "true", "\(second)")
        }
    }

    @Test func requestsThatMayNotUseWWANAreRefusedWhileItIsThere() async throws {
        try await withTestBed { bed in
            let pins = """
                hosts:
                  - match: \(NetworkBed.name)
                    session: {allow_wwan: false}
                  - match: \(NetworkBed.otherName)
                    rules:
                      - {path: /die, session: {allow_wwan: false}}

                """
            let network = try await NetworkBed(in: bed, pins: pins, marks: ["up0": "wwan"])
            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1 metric 9")
            let change = try await network.proxy.events.first("reachability.change") { $0["to"] == "via-wwan" }
            #expect(change["kind"] == "cellular")
            let refused = try await network.curl(network.url())
            #expect(refused.output.hasSuffix("503 000"), "\(refused)")
            #expect(refused.output.contains("503 remote.test is not used over WWAN"), "\(refused)")
            #expect(refused.output.contains("(up0), and session.allow_wwan is false ("), "\(refused)")
            #expect(refused.output.contains("pins.yaml:2)"), "\(refused)")
            #expect(refused.output.contains("Retry-After: 5\r\n"), "\(refused)")
            // Path rules are checked for each request, even if a connection is available.
            let allowed = try await network.curl(network.url("/echo", of: NetworkBed.otherName))
            #expect(allowed.output.hasSuffix("200 200"), "\(allowed)")
            let forbidden = try await network.curl(network.url("/die", of: NetworkBed.otherName))
            #expect(forbidden.output.hasSuffix("200 503"), "\(forbidden)")
            #expect(network.origin.events.all("request").count == 1)

            // A wired link takes over.
            try await network.addUplink(1)
            try await network.ip("route add default via 198.51.100.1 metric 1")
            _ = try await network.proxy.events.first("reachability.change") { $0["to"] == "via-wired" }
            let now = try await network.curl(network.url())
            #expect(now.output.hasSuffix("200 200"), "\(now)")
        }
    }

    @Test(arguments: ["203.0.113.10", NetworkBed.name])
    func aHostThatIsFollowedIsJudgedByItsOwnStatus(_ target: String) async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed, sections: ["reachability": ["- any", "- \(target)"]])
            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1")
            _ = try await network.proxy.events.first("reachability.change") {
                $0["target"] == target && $0["to"] == "via-wired"
            }
            try await network.ip("route add unreachable 203.0.113.10/32")
            let change = try await network.proxy.events.first("reachability.change") {
                $0["target"] == target && $0["from"] == "via-wired" && $0["to"] == "not-reachable"
            }
            #expect(change["reason"] == "the route's type is unreachable")
            let refused = try await network.curl(network.url(of: target))
            #expect(refused.output.hasSuffix("503 000"), "\(refused)")
            #expect(refused.output.contains("the route's type is unreachable"), "\(refused)")
            let other = try await network.curl(network.url(of: NetworkBed.otherName))
            #expect(other.output.hasSuffix("200 200"), "\(other)")
        }
    }

    @Test func aReloadChangesWhatIsFollowed() async throws {
        try await withTestBed { bed in
            let network = try await NetworkBed(in: bed)
            _ = try await network.change(1)
            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: bed.path("roots.pem"),
                sections: ["reachability": ["- here.test"]])
            #expect(try await network.proxy.reload().name == "config.reload")
            let change = try await network.change(2)
            #expect(change["target"] == "here.test")
            #expect(change["to"] == "via-loopback")
            // Still tracked, and no longer reported.
            try await network.addUplink()
            try await network.ip("route add default via 192.0.2.1")
            try await eventually("the network to be used") {
                try await network.curl(network.url()).output.hasSuffix("200 200")
            }
            #expect(network.proxy.events.all("reachability.change").count == 2)
        }
    }
}
