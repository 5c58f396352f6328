import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTLS
import Testing

@testable import PinproxyDaemon

@Suite struct AdminGateTests {
    private static let token = "0123456789abcdef0123456789abcdef"

    private func gate(token: String? = nil, hosts: [String] = []) -> AdminGate {
        var settings = AdminSettings()
        settings.token = token.map { SHA256Digest.of(Array($0.utf8)) }
        settings.hosts = hosts
        return AdminGate(settings)
    }

    private func request(host: String? = "127.0.0.1:7468", _ authorization: String? = nil) -> ControlRequest {
        var request = ControlRequest(.get, "/status", through: .port(client: "127.0.0.1:1"))
        request.host = host
        request.authorization = authorization
        return request
    }

    @Test(arguments: [
        "127.0.0.1", "127.0.0.1:7468", "[::1]:7468", "localhost", "LOCALHOST:1", "localhost.:7468", "192.0.2.7:9",
        "own.example",
        "Own.Example:7468",
    ])
    func itAnswersToItsOwnNames(_ host: String) {
        #expect(gate(hosts: ["own.example"]).objection(to: request(host: host), needing: .read) == nil)
    }

    /// Requests of a browser that another site's name led here (DNS rebinding).
    @Test(arguments: [
        "evil.test", "evil.test:7468", "127.0.0.1.evil.test", "localhost.evil.test", "sub.own.example", "", "a b",
        "127.1",
        "2130706433", "0x7f.1", "::1", "user@127.0.0.1", "127.0.0.1:99999",
    ])
    func itAnswersToNoOther(_ host: String) {
        for right in [AdminGate.Right.fetch, .read, .change] {
            let objection = gate(token: Self.token, hosts: ["own.example"])
                .objection(to: request(host: host, "Bearer \(Self.token)"), needing: right)
            #expect(objection?.status == 421, "\(host)")
        }
    }

    /// What a browser reports about the requesting page. Pages on other ports of the same machine are `same-site`.
    @Test(
        arguments: [
            (nil, nil), ("same-origin", nil), ("none", nil), ("cross-site", 403), ("same-site", 403), ("", 403),
            ("none, cross-site", 403),
            ("Same-Origin", 403), ("something-new", 403),
        ] as [(String?, Int?)])
    func itAnswersToNoPageOfAnother(_ site: String?, _ status: Int?) {
        for right in [AdminGate.Right.fetch, .read, .change] {
            var request = request("Bearer \(Self.token)")
            request.fetchSite = site
            #expect(gate(token: Self.token).objection(to: request, needing: right)?.status == status)
        }
    }

    @Test func whoNamesNoHostIsNoBrowser() {
        #expect(gate().objection(to: request(host: nil), needing: .read) == nil)
    }

    @Test func withoutATokenItIsReadAndNotChanged() {
        let gate = gate()
        #expect(gate.objection(to: request(), needing: .fetch) == nil)
        #expect(gate.objection(to: request(), needing: .read) == nil)
        #expect(gate.objection(to: request(), needing: .change)?.status == 403)
        #expect(gate.objection(to: request("Bearer x"), needing: .change)?.status == 403)
        #expect(gate.objection(to: request(), needing: .own)?.status == 403)
        #expect(!gate.mayControl(request()))
    }

    @Test func withATokenItIsNeededForBoth() {
        let gate = gate(token: Self.token)
        #expect(gate.objection(to: request(), needing: .fetch) == nil)
        for right in [AdminGate.Right.read, .change] {
            let objection = gate.objection(to: request(), needing: right)
            #expect(objection?.status == 401 && objection?.wantsToken == true)
            #expect(gate.objection(to: request("Bearer \(Self.token)"), needing: right) == nil)
            #expect(gate.objection(to: request("bearer   \(Self.token)"), needing: right) == nil)
        }
        #expect(gate.objection(to: request("Bearer \(Self.token)"), needing: .own)?.status == 403)
        #expect(gate.mayControl(request("Bearer \(Self.token)")))
    }

    @Test(arguments: [
        "", "Bearer", "Bearer ", "Basic \(token)", token, "Bearer \(token)x", "Bearer x\(token)", "Bearer \(token) x",
    ])
    func anotherTokenIsNone(_ authorization: String) {
        #expect(gate(token: Self.token).objection(to: request(authorization), needing: .read)?.status == 401)
        for count in 0..<Self.token.count {
            let part = "Bearer " + Self.token.prefix(count)
            #expect(gate(token: Self.token).objection(to: request(part), needing: .read)?.status == 401)
        }
    }

    @Test func theControlSocketIsAllowedEverything() {
        var request = ControlRequest(
            .post, "/learn", through: .socket(ControlPeer(UnixSocket.Peer(user: 0, process: 1))))
        request.host = "whatever"
        #expect(gate().objection(to: request, needing: .own) == nil)
        #expect(gate().mayControl(request))
    }

    @Test func theScriptNamesWhereTheProxyIs() throws {
        func address(_ ip: String, _ port: UInt16) throws -> SocketAddress {
            SocketAddress(ip: try #require(IPAddress(ip)), port: port)
        }
        let own = ProxyScript.text(
            [try address("127.0.0.1", 1), try address("::1", 2)], askedAs: "x.test", isSecure: false)
        #expect(own.contains("return \"PROXY 127.0.0.1:1; PROXY [::1]:2\";"))
        let every = [try address("0.0.0.0", 1), try address("::", 2)]
        #expect(
            ProxyScript.text(every, askedAs: "proxy.test", isSecure: true).contains(
                "\"HTTPS proxy.test:1; HTTPS proxy.test:2\""))
        #expect(ProxyScript.text(every, askedAs: nil, isSecure: false).contains("\"PROXY 127.0.0.1:1; PROXY [::1]:2\""))
        #expect(ProxyScript.text(every, askedAs: "2001:db8::1", isSecure: false).contains("\"PROXY [2001:db8::1]:1;"))
    }
}
