import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@Suite struct ParentProxyTests {
    /// Connects through a parent that answers CONNECT with `answer` and then is the origin.
    private func outcome(_ answer: String, heard: Mailbox<String> = Mailbox()) throws -> Workbench.Outcome {
        let authority = try OriginAuthority.shared.get()
        let context = try OriginAuthority.context()
        let peer = try Peer { descriptor in
            heard.put(readHead(descriptor))
            say(answer, to: descriptor)
            if answer.hasPrefix("HTTP/1.1 2") || answer.hasPrefix("HTTP/1.1 1") {
                authority.serve(descriptor, with: context)
            }
        }
        let bench = try Workbench()
        let parent = ParentProxy(host: "127.0.0.1", port: peer.port, authorization: "Basic dTpw")
        return try withExtendedLifetime(peer) {
            try bench.connect(to: bench.target(port: 8443, host: "2001:db8::1", parent: parent)).map {
                $0.close()
                return $0
            }
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 Fine\r\nX: y\r\n\r\n",
        "HTTP/1.1 103 Wait\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ])
    func aTunnelIsAskedForAndTLSRunsInside(answer: String) throws {
        let heard = Mailbox<String>()
        let connection = try #require(outcome(answer, heard: heard).get() as? HTTP1Upstream)
        #expect(connection.verdict?.isAccepted == true)
        #expect(connection.parentHop == nil, "it ends at the origin: the parent's credentials are not for it")
        #expect(
            heard.take()
                == """
                CONNECT [2001:db8::1]:8443 HTTP/1.1\r\nHost: [2001:db8::1]:8443\r\nProxy-Authorization: Basic \
                dTpw\r\n\r\n
                """
        )
    }

    @Test(arguments: [407, 403, 502, 301]) func aRefusalTellsTheStatus(status: Int) throws {
        let result = try outcome("HTTP/1.1 \(status) No\r\nContent-Length: 0\r\n\r\n")
        guard case .failure(.parentRefused(status)) = result else { throw Unexpected(text: "\(result)") }
    }

    @Test(arguments: [
        "", "HTTP/1", "garbage\r\n\r\n", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nearly", "HTTP/1.1 200 OK\r\nToo-Long: ...\r\n\r\n",
    ])
    func anAnswerThatIsntOneOrHasBytesBehindItIsAFailure(answer: String) throws {
        let result = try outcome(answer.replacing("...", with: String(repeating: "x", count: 20_000)))
        guard case .failure(.parentFailed) = result else { throw Unexpected(text: "\(result)") }
    }

    private func plainTarget(
        _ bench: Workbench, _ layer: UpstreamTarget.Layer, host: String = "192.0.2.9", port: UInt16 = 22,
        parent: ParentProxy?, addresses: AddressRules = AddressRules(), via: String? = nil
    ) throws -> UpstreamTarget {
        UpstreamTarget(
            host: host, port: port, layer: layer,
            upstream: UpstreamSettings(
                anchors: try OriginAuthority.shared.get().anchors, parent: parent, addresses: addresses), via: via)
    }

    @Test func whatComesWithTheAnswerIsTheTunnels() throws {
        let peer = try Peer { descriptor in
            _ = readHead(descriptor)
            say("HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n", to: descriptor)
            readToEnd(descriptor)
        }
        let bench = try Workbench()
        let target = try plainTarget(bench, .tunnel, parent: ParentProxy(host: "127.0.0.1", port: peer.port))
        let connection = try #require(bench.connect(to: target).get() as? HTTP1Upstream)
        #expect(String(decoding: connection.responses.takeReceived(), as: UTF8.self) == "SSH-2.0-x\r\n")
        connection.close()
    }

    @Test func onlyAConnectionThatEndsAtTheParentHasWhatIsWrittenToIt() throws {
        let peer = try Peer { descriptor in
            _ = readHead(descriptor)
            say("HTTP/1.1 200 OK\r\n\r\n", to: descriptor)
            readToEnd(descriptor)
        }
        let bench = try Workbench()
        let parent = ParentProxy(host: "127.0.0.1", port: peer.port, authorization: "Basic dTpw")
        let tunnel = try #require(
            bench.connect(to: plainTarget(bench, .tunnel, parent: parent)).get() as? HTTP1Upstream)
        #expect(tunnel.parentHop == nil)
        tunnel.close()
        let plain = try #require(bench.connect(to: plainTarget(bench, .plain, parent: parent)).get() as? HTTP1Upstream)
        #expect(plain.parentHop?.edits.list.map(\.name) == ["Proxy-Authorization"])
        plain.close()
        let target = try plainTarget(bench, .plain, host: "127.0.0.1", port: peer.port, parent: nil)
        let direct = try #require(bench.connect(to: target).get() as? HTTP1Upstream)
        #expect(direct.parentHop == nil)
        direct.close()
    }

    @Test func connectNamesTheHopsSoFar() throws {
        let heard = Mailbox<String>()
        let peer = try Peer { descriptor in
            heard.put(readHead(descriptor))
            say("HTTP/1.1 200 OK\r\n\r\n", to: descriptor)
            readToEnd(descriptor)
        }
        let bench = try Workbench()
        let parent = ParentProxy(host: "127.0.0.1", port: peer.port, authorization: "Basic dTpw")
        let target = try plainTarget(bench, .tunnel, parent: parent, via: "1.0 a, 1.1 pinproxy-x")
        try bench.connect(to: target).get().close()
        #expect(
            heard.take()
                == """
                CONNECT 192.0.2.9:22 HTTP/1.1\r\nHost: 192.0.2.9:22\r\nVia: 1.0 a, 1.1 \
                pinproxy-x\r\nProxy-Authorization: Basic dTpw\r\n\r\n
                """
        )
    }

    @Test(arguments: [UpstreamTarget.Layer.plain, .tunnel])
    func theParentIsntAskedForABlockedAddress(layer: UpstreamTarget.Layer) throws {
        let bench = try Workbench()
        for host in ["169.254.169.254", "64:ff9b::a9fe:a9fe"] {
            let target = try plainTarget(bench, layer, host: host, parent: ParentProxy(host: "127.0.0.1", port: 1))
            guard case .blocked = try bench.failure(to: target) else { throw Unexpected(text: host) }
        }
    }

    /// The name server is silent: after waiting for it, the parent is asked.
    @Test func aNameThatCantBeLookedUpHereIsTheParentsToJudge() throws {
        let server = try NameServer(answers: false)
        let peer = try Peer { descriptor in
            _ = readHead(descriptor)
            say("HTTP/1.1 200 OK\r\n\r\n", to: descriptor)
            readToEnd(descriptor)
        }
        let bench = try Workbench(nameServer: server.address)
        let parent = ParentProxy(host: "127.0.0.1", port: peer.port)
        try bench.connect(to: plainTarget(bench, .tunnel, host: "slow.test", parent: parent)).get().close()
    }

    @Test func localhostIsNotTheParents() throws {
        let bench = try Workbench()
        for host in ["localhost", "app.localhost"] {
            let target = try plainTarget(bench, .plain, host: host, parent: ParentProxy(host: "192.0.2.1", port: 1))
            #expect(target.key.parent == nil)
        }
    }

    @Test func aParentThatIsntThereIsUnreachable() throws {
        let port = try Peer { _ in }.port
        let bench = try Workbench()
        let failure = try bench.failure(to: bench.target(port: 443, parent: ParentProxy(host: "127.0.0.2", port: port)))
        guard case .unreachable = failure else { throw Unexpected(text: "\(failure)") }
    }
}
