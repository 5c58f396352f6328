import Foundation
import Testing

/// Which addresses the proxy connects to: entries of the pin file in every spelling, `block_addresses` and its
/// exceptions, and the proxy's own listeners.
@Suite(.timeLimit(.minutes(5)))
struct AddressTests {
    private static func status(_ proxy: ProxyProcess, _ authority: String) async throws -> Int {
        try await proxy.connect(to: authority).status
    }

    private static func deny(_ match: String) -> String {
        "hosts:\n  - match: \"\(match)\"\n    action: deny\n"
    }

    @Test(arguments: [
        (
            "127.0.0.1",
            [
                "127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7f00:0001]", "0.0.0.0",
                "[::ffff:0.0.0.0]",
            ]
        ),
        ("0.0.0.0", ["127.0.0.1", "0.0.0.0"]),
        ("::ffff:127.0.0.1", ["127.0.0.1", "[::ffff:127.0.0.1]"]),
        ("::1", ["[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0.0.0.1]", "[0::0]"]),
        ("192.0.2.7", ["[64:ff9b::192.0.2.7]", "[64:ff9b::c000:207]", "[::ffff:0:192.0.2.7]", "[::192.0.2.7]"]),
    ])
    func anEntryForAnAddressDecidesForEverySpelling(match: String, spellings: [String]) async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, pins: Self.deny(match), trust: nil)
            for spelling in spellings {
                let answer = try await proxy.connect(to: "\(spelling):443")
                #expect(answer.status == 403, "\(spelling): \(answer)")
                let plain = try await bed.curl(
                    via: proxy, ["-o", "/dev/null", "-w", "%{http_code}", "http://\(spelling)/"])
                #expect(plain.output == "403", "\(spelling): \(plain)")
            }
        }
    }

    /// inet_aton and browsers accept these as addresses. The proxy does not.
    @Test(arguments: ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "127.0.0.1.1", "127.000.000.001"])
    func otherSpellingsOfAnAddressAreNoHosts(_ host: String) async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, pins: Self.deny("127.0.0.1"), trust: nil)
            #expect(try await Self.status(proxy, "\(host):443") == 400)
        }
    }

    @Test func anAddressWithoutBracketsIsRefusedWithWhatToWrite() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(in: bed, trust: nil)
            let answer = try await proxy.connect(to: "::1:443")
            #expect(answer.status == 400)
            #expect(answer.body.contains("write [::1]:443"), "\(answer)")
        }
    }

    /// The origin is verified as the dialled address. The client's certificate has the address that the client wrote.
    @Test(arguments: ["127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0"])
    func aClientGetsACertificateForTheAddressAsItWroteIt(host: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(roots.leaf("127.0.0.1")))
            let proxy = try await ProxyProcess(in: bed, trust: roots.write(to: bed))
            let run = try await bed.curl(via: proxy, ["https://\(host):\(origin.port)/echo"])
            #expect(run.output.contains("\"method\": \"GET\""), "\(run)")
            #expect(try await proxy.events.first("exchange")["host"] == "127.0.0.1")
        }
    }

    // MARK: block_addresses

    @Test func aTightenedRuleEndsWhatIsHeld() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(bed)
            let origin = try #require(shared.origin)
            // One held for its first request, one kept for the client alone, one in the pool.
            let held = try await HeldClient(in: shared)
            #expect(try await held.connect() == "200")
            let personal = try await HeldClient(in: shared)
            #expect(try await personal.connect() == "200")
            _ = try await personal.secure()
            #expect(try await personal.get("/login/NTLM") == "401")
            let pooled = try await HeldClient(in: shared)
            #expect(try await pooled.connect() == "200")
            _ = try await pooled.secure()
            #expect(try await pooled.get() == "200")
            #expect(origin.events.all("connection").count == 3)

            try ProxyProcess.write(
                to: bed, folder: "proxy", pins: "hosts: []\n", trust: bed.path("roots.pem"),
                sections: ["upstream": ["block_addresses: [127.0.0.0/8]"]])
            #expect(try await shared.proxy.reload().name == "config.reload")
            try await eventually("the origin's connections to be closed") { origin.events.all("closed").count == 3 }
            #expect(try await pooled.get() == "403")
            #expect(try await personal.get() == "403")
            _ = try await held.secure()
            #expect(try await held.get() == "403")
            #expect(try await Self.status(shared.proxy, shared.authority) == 403)
        }
    }

    @Test func exceptionsLetThrough() async throws {
        try await withTestBed { bed in
            let shared = try await OriginBed.prepare(
                bed,
                sections: ["upstream": ["block_addresses: [loopback, 10.0.0.0/8]", "allow_addresses: [127.0.0.1]"]],
                hosts: ["second.test": "127.0.0.2"])
            #expect(try await Self.status(shared.proxy, shared.authority) == 200)
            #expect(
                try await Self.status(shared.proxy, "[::ffff:127.0.0.1]:\(shared.originPort)") == 502, "another name")
            let second = try await shared.proxy.connect(to: "second.test:\(shared.originPort)")
            #expect(second.status == 403)
            #expect(second.body.contains("127.0.0.2 is loopback, which upstream.block_addresses names"), "\(second)")
            let range = try await shared.proxy.connect(to: "[::ffff:10.1.2.3]:443")
            #expect(range.body.contains("10.1.2.3 is in 10.0.0.0/8, which upstream.block_addresses names"), "\(range)")
        }
    }

    /// The parent resolves the name itself, but the proxy still checks the addresses known here.
    @Test func aParentIsNotAskedForNamesOfBlockedAddresses() async throws {
        try await withTestBed { bed in
            let parent = try await PythonPeer(in: bed, script: "parent.py", ["--banner", "x"])
            let proxy = try await ProxyProcess(
                in: bed, pins: "defaults: {action: tunnel}\n", trust: nil,
                hosts: ["cloud.test": "169.254.169.254", "both.test": "192.0.2.1"],
                sections: ["upstream": ["parent: http://127.0.0.1:\(parent.port)"]])
            for host in ["cloud.test", "169.254.169.254", "[::ffff:a9fe:a9fe]"] {
                #expect(try await Self.status(proxy, "\(host):443") == 403, "\(host)")
                let plain = try await bed.curl(
                    via: proxy, ["-o", "/dev/null", "-w", "%{http_code}", "http://\(host)/"])
                #expect(plain.output == "403", "\(host): \(plain)")
            }
            #expect(parent.events.all("connect").isEmpty && parent.events.all("request").isEmpty)
            #expect(try await Self.status(proxy, "both.test:443") == 200)
            // The name is unknown here, so the parent decides.
            #expect(try await Self.status(proxy, "nowhere.onion:443") == 200)
        }
    }

    @Test func localhostStaysHereAlthoughThereIsAParent() async throws {
        try await withTestBed { bed in
            let parent = try await PythonPeer(in: bed, script: "parent.py", ["--banner", "x"])
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["upstream": ["parent: http://127.0.0.1:\(parent.port)"]])
            for host in ["localhost", "LOCALHOST.", "my.app.localhost"] {
                let run = try await bed.run([
                    "curl", "-sS", "--noproxy", "", "--proxy", proxy.url, "http://\(host):\(origin.port)/echo",
                ])
                #expect(run.output.contains("\"method\": \"GET\""), "\(host): \(run)")
            }
            #expect(parent.events.all.count == 1, "\(parent.events.all)")
        }
    }

    // MARK: The proxy itself

    @Test func itsOwnListenersAreNeverDialled() async throws {
        try await withTestBed { bed in
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, hosts: ["itself.test": "127.0.0.1"],
                sections: ["proxy": ["listen: 0.0.0.0:0"], "upstream": ["block_addresses: [link-local]"]])
            for host in ["127.0.0.1", "127.0.0.9", "0.0.0.0", "[::ffff:127.0.0.1]", "localhost", "itself.test"] {
                let answer = try await proxy.connect(to: "\(host):\(proxy.port)")
                #expect(answer.status == 508, "\(host): \(answer)")
                #expect(answer["Proxy-Status"]?.contains("proxy_loop_detected") == true, "\(host): \(answer)")
                let plain = try await bed.run([
                    "curl", "-sS", "--noproxy", "", "--proxy", "http://127.0.0.1:\(proxy.port)", "-o", "/dev/null",
                    "-w", "%{http_code}", "http://\(host):\(proxy.port)/",
                ])
                #expect(plain.output == "508", "\(host): \(plain)")
            }
            // Each was answered by the first exchange: none came back in.
            _ = try await proxy.events.first("exchange", number: 12)
            #expect(proxy.events.all("exchange").count == 12, "\(proxy.events.all("exchange"))")
        }
    }

    /// The loop can't be seen from here: the proxy recognizes its own Via.
    @Test(arguments: [false, true]) func aLoopThroughTheParentEndsAtTheFirstTurn(isPlain: Bool) async throws {
        try await withTestBed { bed in
            let relay = try await PythonPeer(in: bed, script: "parent.py", ["--relay"])
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, sections: ["upstream": ["parent: http://127.0.0.1:\(relay.port)"]])
            let control = try RawConnection(port: relay.port)
            try await control.send("GET /target/\(proxy.port) HTTP/1.1\r\nHost: relay\r\n\r\n")
            #expect(try await control.response().status == 200)
            let client = try RawConnection(to: proxy)
            let target = isPlain ? "GET http://loop.test:8080/" : "CONNECT loop.test:8080"
            try await client.send("\(target) HTTP/1.1\r\nHost: loop.test:8080\r\nVia: 1.1 another\r\n\r\n")
            let answer = try await client.response()
            // The tunnel was refused to the proxy itself; a request's answer comes back as it is.
            #expect(answer.status == (isPlain ? 508 : 502), "\(answer)")
            var exchanges: [LogEvent] = []
            try await eventually("both exchanges") {
                exchanges = proxy.events.all("exchange")
                return exchanges.count == 2
            }
            #expect(
                exchanges.contains { $0["status"] == "508" && $0["error"] == "proxy_loop_detected" }, "\(exchanges)")
            #expect(relay.events.all("relayed").count == 1)
        }
    }

    // MARK: Clients from elsewhere

    /// An address of this machine that is not loopback. Clients from it count as coming from elsewhere.
    static let outerAddress: String? = {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return nil }
        defer { freeifaddrs(list) }
        var next = list
        while let current = next {
            next = current.pointee.ifa_next
            guard let address = current.pointee.ifa_addr, address.pointee.sa_family == sa_family_t(AF_INET),
                current.pointee.ifa_flags & UInt32(IFF_UP) != 0
            else { continue }
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            getnameinfo(
                address, socklen_t(MemoryLayout<sockaddr_in>.size), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST
            )
            let name = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            if !name.hasPrefix("127.") { return name }
        }
        return nil
    }()

    @Test(.enabled(if: outerAddress != nil, "every address of this machine is loopback"), arguments: [false, true])
    func aClientFromElsewhereDoesNotReachLoopback(isAllowed: Bool) async throws {
        let outer = try #require(Self.outerAddress)
        try await withTestBed { bed in
            let origin = try await PythonPeer.origin(in: bed, chain: nil)
            let proxy = try await ProxyProcess(
                in: bed, trust: nil, hosts: ["inner.test": "127.0.0.1"],
                sections: [
                    "proxy": ["listen: 0.0.0.0:0", "allow_clients: [127.0.0.0/8, \(outer)]", "workers: 1"],
                    "upstream": isAllowed ? ["allow_addresses: [loopback]"] : [],
                ])
            func ask(_ host: String, port: UInt16, through address: String) async throws -> Run {
                try await bed.run([
                    "curl", "-sS", "--noproxy", "", "--proxy", "http://\(address):\(proxy.port)",
                    "http://\(host):\(port)/echo", "-w", "%{http_code}",
                ])
            }
            for host in ["127.0.0.1", "localhost", "inner.test", "[::ffff:127.0.0.1]", "0.0.0.0"] {
                // First a client of this machine leaves a connection in the pool.
                let near = try await ask(host, port: origin.port, through: "127.0.0.1")
                #expect(near.output.hasSuffix("200"), "\(host): \(near)")
                let far = try await ask(host, port: origin.port, through: outer)
                #expect(far.output.hasSuffix(isAllowed ? "200" : "403"), "\(host): \(far)")
                let itself = try await ask(host, port: proxy.port, through: outer)
                #expect(
                    itself.output.hasSuffix("508") || (!isAllowed && itself.output.hasSuffix("403")),
                    "\(host): \(itself)")
            }
        }
    }
}
