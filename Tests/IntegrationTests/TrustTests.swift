import PinproxyTestAuthority
import Testing

/// Chains that an origin presents, and whether the proxy may trust them.
struct TrustCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let host: String
    let expected: Expected
    let chain: @Sendable (TestRoots, _ host: String) throws -> ServedChain

    init(
        _ description: String, host: String, _ expected: Expected,
        chain: @escaping @Sendable (TestRoots, String) throws -> ServedChain
    ) {
        testDescription = "\(description): \(expected)"
        (self.host, self.expected, self.chain) = (host, expected, chain)
    }

    /// The usual chain with one change to the leaf.
    init(
        _ description: String, host: String, _ expected: Expected,
        leaf change: @escaping @Sendable (inout CertificateTemplate) -> Void
    ) {
        self.init(description, host: host, expected) { roots, host in
            ServedChain(try roots.leaf(host, change: change))
        }
    }

    static let all: [TrustCase] = [
        TrustCase("as it should be, root not sent", host: "good.test", .accepted) { _ in },
        TrustCase("the root is sent too", host: "root-sent.test", .accepted) { roots, host in
            ServedChain(try roots.leaf(host), followedBy: [roots.intermediate, roots.root])
        },
        TrustCase("expired", host: "expired.test", .refused(502, "expired")) {
            $0.notAfter = TestRoots.now - CertificateTemplate.day
        },
        TrustCase("not yet valid", host: "early.test", .refused(502, "not yet valid")) {
            $0.notBefore = TestRoots.now + CertificateTemplate.day
        },
        TrustCase("another host's", host: "other.test", .refused(502, "other.test")) {
            $0.dnsNames = ["somebody-else.test"]
        },
        TrustCase("a common name and no alternative name", host: "cn-only.test", .refused(502, "certificate")) {
            $0.dnsNames = []
        },
        TrustCase("a wildcard for the left-most label", host: "a.wild.test", .accepted) {
            $0.dnsNames = ["*.wild.test"]
        },
        TrustCase("a wildcard for two labels", host: "a.b.wild2.test", .refused(502, "certificate")) {
            $0.dnsNames = ["*.wild2.test"]
        },
        TrustCase("a wildcard for a part of a label", host: "partial.wild3.test", .refused(502, "certificate")) {
            $0.dnsNames = ["part*.wild3.test"]
        },
        TrustCase("self-signed", host: "self-signed.test", .refused(502, "self-signed")) { _, host in
            ServedChain(try .selfSigned(TestRoots.template([host])))
        },
        TrustCase("an unknown root", host: "unknown-root.test", .refused(502, "certificate")) { _, host in
            try TestRoots("Unknown").chain(host)
        },
        TrustCase("an unknown root that is sent along", host: "sent-root.test", .refused(502, "certificate")) {
            _, host in
            let unknown = try TestRoots("Unknown")
            return ServedChain(try unknown.leaf(host), followedBy: [unknown.intermediate, unknown.root])
        },
        TrustCase("the intermediate is missing", host: "gap.test", .refused(502, "certificate")) { roots, host in
            ServedChain(try roots.leaf(host), followedBy: [])
        },
        TrustCase("an RSA key of 1024 bits", host: "weak.test", .refused(502, "certificate")) { $0.key = .rsa(1024) },
        TrustCase("an RSA key of 768 bits", host: "weaker.test", .refused(502, "certificate")) { $0.key = .rsa(768) },
        TrustCase("an RSA key of 2048 bits", host: "rsa.test", .accepted) { $0.key = .rsa(2048) },
        TrustCase("a SHA-1 signature", host: "sha1.test", .refused(502, "certificate")) { $0.digest = .sha1 },
        TrustCase("an MD5 signature", host: "md5.test", .refused(502, "certificate")) { roots, host in
            // An RSA key signs it: there is no ECDSA with MD5.
            let issuer = try roots.root.issue(.intermediate("RSA").validToday.with { $0.key = .rsa(2048) })
            return ServedChain(try issuer.issue(TestRoots.template([host]) { $0.digest = .md5 }))
        },
        TrustCase("an intermediate with a SHA-1 signature", host: "sha1-issuer.test", .refused(502, "certificate")) {
            roots, host in
            let issuer = try roots.root.issue(.intermediate("SHA-1").validToday.with { $0.digest = .sha1 })
            return ServedChain(try issuer.issue(TestRoots.template([host])))
        },
        TrustCase("a broken signature", host: "broken.test", .refused(502, "certificate")) {
            $0.breaksSignature = true
        },
        TrustCase("for clients only", host: "client-only.test", .refused(502, "certificate")) {
            $0.extendedKeyUsage = [CertificateTemplate.clientAuth]
        },
        TrustCase(
            "RSA for encipherment only, which TLS 1.3 and ECDHE have no use for", host: "encipherment.test",
            .refused(502, "certificate")
        ) {
            $0.key = .rsa(2048)
            $0.keyUsage = [.keyEncipherment]
        },
        TrustCase("a key for key agreement only", host: "agreement.test", .refused(502, "certificate")) {
            $0.keyUsage = [.keyAgreement]
        },
        TrustCase("RSA for signatures and encipherment", host: "both-usages.test", .accepted) {
            $0.key = .rsa(2048)
            $0.keyUsage = [.digitalSignature, .keyEncipherment]
        },
        TrustCase("no authority key identifier (strict)", host: "no-aki.test", .refused(502, "certificate")) {
            $0.authorityKeyIdentifier = .none
        },
        TrustCase("issued by a leaf", host: "leaf-issued.test", .refused(502, "certificate")) { roots, host in
            let issuer = try roots.leaf("issuer.test")
            return ServedChain(
                try issuer.issue(TestRoots.template([host])), followedBy: [issuer, roots.intermediate])
        },
        TrustCase("beyond the path length", host: "path-length.test", .refused(502, "certificate")) { roots, host in
            let below = try roots.intermediate.issue(.intermediate("Below").validToday)
            return ServedChain(try below.issue(TestRoots.template([host])))
        },
    ]
}

extension TrustCase {
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        // Clients without SNI get the first site; requests for addresses have no SNI.
        var sites = [
            NginxOrigin.Site(name: "address.test", chain: try roots.chain("address.test", "127.0.0.1", "::1"))
        ]
        for test in all {
            sites.append(.init(name: test.host, chain: try test.chain(roots, test.host)))
        }
        let nginx = try await NginxOrigin(in: bed, sites: sites)
        let hosts = Dictionary(uniqueKeysWithValues: sites.map { ($0.name, "127.0.0.1") })
        let proxy = try await ProxyProcess(in: bed, trust: roots.write(to: bed), hosts: hosts)
        return SharedBed(bed: bed, proxy: proxy, originPort: nginx.port, secondOriginPort: nginx.ipv6Port)
    }
}

@Suite(.sharedBed(TrustCase.prepare), .timeLimit(.minutes(5)))
struct TrustTests {
    @Test(arguments: TrustCase.all)
    func aChainIsJudged(_ test: TrustCase) async throws {
        let shared = try sharedBed()
        let answer = try await shared.proxy.connect(to: "\(test.host):\(shared.originPort)")
        test.expected.check(answer, host: test.host)
    }

    @Test func aRefusalIsLoggedWithItsCause() async throws {
        let shared = try sharedBed()
        _ = try await shared.proxy.connect(to: "expired.test:\(shared.originPort)")
        let event = try await shared.proxy.events.first("trust.failure") { $0["host"] == "expired.test" }
        #expect("\(event)".contains("expired"))
    }

    @Test func namesAreComparedAsDNSDoes() async throws {
        let shared = try sharedBed()
        for name in ["GOOD.test", "good.test.", "Good.Test."] {
            let answer = try await shared.proxy.connect(to: "\(name):\(shared.originPort)")
            #expect(answer.status == 200, "\(name): \(answer)")
        }
    }

    @Test func addressesAreHostsToo() async throws {
        let shared = try sharedBed()
        #expect(try await shared.proxy.connect(to: "127.0.0.1:\(shared.originPort)").status == 200)
        #expect(try await shared.proxy.connect(to: "[::1]:\(shared.secondOriginPort)").status == 200)
        // Without brackets the port is indistinguishable from the last group.
        #expect(try await shared.proxy.connect(to: "::1:\(shared.secondOriginPort)").status == 400)
        for target in ["https://127.0.0.1:\(shared.originPort)", "https://[::1]:\(shared.secondOriginPort)"] {
            let run = try await shared.bed.run(
                ["curl", "-sS", "\(target)/hello"], environment: shared.proxy.clientEnvironment)
            #expect(run.output == "hello", "\(run)")
        }
    }

    @Test func anAddressNeedsAnAddressInTheCertificate() async throws {
        let roots = try TestRoots()
        try await withTestBed { bed in
            let chain = ServedChain(
                try roots.leaf("127.0.0.1") {
                    $0.dnsNames = ["127.0.0.1"]
                    $0.ipAddresses = []
                })
            let origin = try await PythonPeer.origin(in: bed, chain: chain)
            let proxy = try await ProxyProcess(in: bed, trust: roots.write(to: bed))
            let answer = try await proxy.connect(to: "127.0.0.1:\(origin.port)")
            Expected.refused(502, "certificate").check(answer, host: "127.0.0.1")
        }
    }

    @Test func aHostOf300CharactersIsRefused() async throws {
        let shared = try sharedBed()
        let host = Array(repeating: "abcdefghi", count: 30).joined(separator: ".") + ".test"
        let answer = try await shared.proxy.connect(to: "\(host):\(shared.originPort)")
        #expect([400, 502].contains(answer.status), "\(answer)")
        #expect(answer["Proxy-Status"]?.contains("error=") == true)
    }

    @Test(arguments: ["-tls1", "-tls1_1"])
    func oldTLSIsRefused(version: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await OpenSSLServer(
                in: bed, chain: roots.chain("old.test"), [version, "-cipher", "ALL:@SECLEVEL=0"])
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["old.test": "127.0.0.1"])
            let answer = try await proxy.connect(to: "old.test:\(origin.port)")
            Expected.refused(502, "TLS").check(answer, host: "old.test")
        }
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func newTLSIsTaken(version: String) async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await OpenSSLServer(in: bed, chain: roots.chain("new.test"), [version, "-www"])
            let proxy = try await ProxyProcess(
                in: bed, trust: roots.write(to: bed), hosts: ["new.test": "127.0.0.1"])
            let run = try await bed.run(
                ["curl", "-sS", "https://new.test:\(origin.port)/"], environment: proxy.clientEnvironment)
            #expect(run.output.contains("s_server"), "\(run)")
        }
    }

    /// The root above it is unknown here.
    @Test func anIntermediateMayBeTrusted() async throws {
        try await withTestBed { bed in
            let roots = try TestRoots()
            let origin = try await PythonPeer.origin(in: bed, chain: roots.chain("issued.test"))
            let stranger = try await PythonPeer.origin(in: bed, chain: TestRoots("Other").chain("stranger.test"))
            let proxy = try await ProxyProcess(
                in: bed, trust: bed.file("issuing.pem", roots.intermediate.pem),
                hosts: ["issued.test": "127.0.0.1", "stranger.test": "127.0.0.1"])
            #expect(try await proxy.connect(to: "issued.test:\(origin.port)").status == 200)
            let answer = try await proxy.connect(to: "stranger.test:\(stranger.port)")
            Expected.refused(502, "certificate").check(answer, host: "stranger.test")
            let check = try await bed.run(
                [ProxyProcess.executable, "check", "--config", bed.path("proxy/pinproxy.yaml")],
                environment: ProxyProcess.environment(in: bed))
            #expect(check.succeeded && check.errors == "", "\(check)")
        }
    }
}
