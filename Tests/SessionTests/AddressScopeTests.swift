import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySecurity
import PinproxySerialization
import PinproxyTLS
import PinproxyTestAuthority
import Testing

@testable import PinproxySession

/// A redirect from an internet address reaches no internal address, on every kind of connection.
@Suite struct AddressScopeTests {
    @Test(arguments: [
        ("127.0.0.1", AddressScope.inside), ("127.8.8.8", .inside), ("::1", .inside), ("::", .inside),
        ("0.0.0.0", .inside), ("10.0.0.1", .inside),
        ("172.16.0.1", .inside), ("172.32.0.1", .outside), ("192.168.1.1", .inside), ("100.64.0.1", .inside),
        ("100.128.0.1", .outside),
        ("169.254.1.1", .inside), ("fe80::1", .inside), ("fd00::1", .inside), ("fec0::1", .inside),
        ("168.63.129.16", .inside),
        ("192.0.0.192", .inside), ("224.0.0.1", .inside), ("ff02::1", .inside), ("::ffff:10.0.0.1", .inside),
        ("64:ff9b::7f00:1", .inside),
        ("2002:0a00:1::1", .inside), ("192.0.2.1", .outside), ("8.8.8.8", .outside), ("2001:db8::1", .outside),
        ("::ffff:8.8.8.8", .outside),
    ])
    func addressesHaveASide(_ text: String, _ scope: AddressScope) throws {
        #expect(try #require(IPAddress(text)).scope == scope)
    }

    @Test func aHostIsInsideIfOneOfItsAddressesIs() throws {
        let (inside, outside) = (try #require(IPAddress("10.0.0.1")), try #require(IPAddress("192.0.2.1")))
        #expect([outside, inside].scope == .inside && [outside].scope == .outside && [IPAddress]().scope == nil)
    }

    private static let outside = UpstreamTarget.Reach.outside(orUnknown: false)

    private func plain(
        _ host: String, _ port: UInt16, parent: UInt16? = nil, reach: UpstreamTarget.Reach = outside,
        rules: AddressRules = AddressRules(blocked: [])
    ) throws -> UpstreamTarget {
        UpstreamTarget(
            host: host, port: port, layer: .plain,
            upstream: UpstreamSettings(
                anchors: try OriginAuthority.shared.get().anchors,
                parent: parent.map { ParentProxy(host: "127.0.0.1", port: $0) },
                addresses: rules)
        ).limited(to: reach)
    }

    private func isInside(_ failure: UpstreamFailure) -> Bool {
        if case .blocked(_, .insideFromOutside) = failure { true } else { false }
    }

    @Test func nothingInsideIsDialled() throws {
        let peer = try Peer { _ in Issue.record("connected") }
        let bench = try Workbench()
        for host in ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1", "::1", "localhost"] {
            #expect(try isInside(bench.failure(to: plain(host, peer.port))), "\(host)")
        }
        // Not even where the configuration makes an exception for it.
        let allowed = AddressRules(blocked: [], allowed: [.kind(.loopback)])
        #expect(try isInside(bench.failure(to: plain("127.0.0.1", peer.port, rules: allowed))))
    }

    /// A pooled connection to an internal address is not reused either.
    @Test func nothingInsideIsTakenFromThePool() throws {
        let peer = try Peer { readToEnd($0) }
        let bench = try Workbench()
        let target = try plain("127.0.0.1", peer.port, reach: .anywhere)
        let connection = try bench.connect(to: target).get()
        #expect(connection.scope == .inside)
        let origin = connection.origin
        bench.pool.giveBack(connection, idleNanoseconds: 60_000_000_000)
        #expect(origin.lease(for: .get, at: 0, within: Self.outside) == nil)
        #expect(origin.lease(for: .get, at: 0, within: .outside(orUnknown: true)) == nil)
        let leased = try #require(origin.lease(for: .get, at: 0))
        #expect(leased === connection)
        _ = leased.end(.abandoned)
    }

    /// The parent resolves the host, so what is known here decides.
    @Test func aParentIsNotAskedForWhatIsInside() throws {
        let peer = try Peer { readToEnd($0) }
        let server = try NameServer(answers: false)
        let bench = try Workbench(nameServer: server.address)
        for host in ["10.1.2.3", "127.0.0.1", "fd00::1", "64:ff9b::a01:203"] {
            #expect(try isInside(bench.failure(to: plain(host, 80, parent: peer.port))), "\(host)")
            let anywhere = try bench.connect(to: plain(host, 80, parent: peer.port, reach: .anywhere)).get()
            anywhere.close()
        }
        let outside = try bench.connect(to: plain("192.0.2.1", 80, parent: peer.port)).get()
        #expect(outside.scope == .outside)
        outside.close()
        // A name that is unknown here may have any address.
        guard case .unknownAddress = try bench.failure(to: plain("slow.test", 80, parent: peer.port)) else {
            throw Unexpected(text: "slow.test")
        }
        let unknown = try bench.connect(to: plain("slow.test", 80, parent: peer.port, reach: .outside(orUnknown: true)))
            .get()
        #expect(unknown.scope == nil)
        unknown.close()
    }

    // MARK: Secrets

    private func destination(_ target: UpstreamTarget, _ bench: Workbench) throws -> Destination {
        Destination(
            authority: try .parse("api.test", defaultPort: 443).get(), target: target,
            origin: bench.pool.origin(for: target.key),
            terms: ExchangeTerms(timeouts: Timeouts(), limits: Limits()), via: nil)
    }

    @Test func aHopKnowsItsRedirect() throws {
        let bench = try Workbench()
        let here = try destination(plain("192.0.2.1", 80, reach: .anywhere), bench)
        func within(_ scope: AddressScope?) -> UpstreamTarget.Reach {
            Hop(within: here, by: nil, after: scope).destination.target.reach
        }
        func abroad(_ scope: AddressScope?, trustsParent: Bool = false) -> UpstreamTarget.Reach? {
            Hop(abroad: here, by: nil, after: scope, trustsParent: trustsParent)?.destination.target.reach
        }
        #expect(
            within(.inside) == .anywhere && within(.outside) == .outside(orUnknown: true) && within(nil) == .anywhere)
        #expect(abroad(.inside) == .anywhere && abroad(.outside) == Self.outside && abroad(nil) == Self.outside)
        #expect(abroad(nil, trustsParent: true) == .outside(orUnknown: true))
        #expect(Hop(asked: here, by: nil).destination === here)
    }

    @Test func aHopAbroadHasNoSecrets() throws {
        let bench = try Workbench()
        var session = SessionRules()
        session.maxActive = 3
        session.credentials = ChallengeCredentials(try DigestAnswerTests.credentials("ada", "geheim"))
        var request = try RuleSamples.request()
        let rules = ExchangeRules(session: session, request: request)
        let here = try destination(plain("192.0.2.1", 80, reach: .anywhere), bench)
        let abroad = try #require(Hop(abroad: here, by: rules, after: .inside, trustsParent: false)?.rules)
        #expect(
            abroad.session.credentials == nil && abroad.session.maxActive == 3 && abroad.request.authorization == nil)
        #expect(abroad.edits.list.map(\.name).sorted() == ["X-Open", "X-Open-Too"] && !abroad.sendsSecret)
        #expect(abroad.counts === rules.counts && abroad.withoutSecrets === abroad)
        #expect(Hop(within: here, by: rules, after: nil).rules === rules)
        request = RequestRules()
        let open = ExchangeRules(request: request)
        #expect(Hop(abroad: here, by: open, after: nil, trustsParent: false)?.rules === open)
    }

    @Test func noCertificateIsShownAbroad() throws {
        let bench = try Workbench()
        let identity = try OriginAuthority.shared.get().identity
        let tls = try ClientTLS(requirements: TrustRequirements(), identity: identity)
        let anchors = try OriginAuthority.shared.get().anchors
        let target = UpstreamTarget(
            host: "192.0.2.1", port: 443, layer: .tls(SecurityPolicy(), anchors, .dns("api.test")),
            upstream: UpstreamSettings(anchors: anchors),
            tls: tls)
        #expect(try Hop(abroad: destination(target, bench), by: nil, after: .inside, trustsParent: true) == nil)
        #expect(try Hop(within: destination(target, bench), by: nil, after: .inside).destination.target.hasIdentity)
    }
}
