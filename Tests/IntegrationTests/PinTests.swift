import Foundation
import PinproxyTestAuthority
import Testing

/// What one pin entry does with one presented chain, by CONNECT.
struct PinCase: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let host: String
    /// The lines of the entry below `match`; nil for a host without an entry.
    var entry: @Sendable (Parts) async throws -> [String]?
    var chain: @Sendable (Parts) throws -> ServedChain = { ServedChain($0.leaf) }
    let expected: Expected

    /// What a case is made of.
    struct Parts: Sendable {
        let bed: TestBed
        let roots: TestRoots
        /// Authorities that are not trusted.
        let strangers: TestRoots
        /// The certificate of the case's host.
        let leaf: HeldCertificate

        func file(_ name: String, _ pem: String) throws -> String {
            try bed.file("proxy/\(leaf.pem.hashValue)-\(name).pem", pem)
        }
    }

    init(
        _ description: String, host: String, _ expected: Expected,
        chain: @escaping @Sendable (Parts) throws -> ServedChain = { ServedChain($0.leaf) },
        entry: @escaping @Sendable (Parts) async throws -> [String]?
    ) {
        testDescription = "\(description): \(expected)"
        (self.host, self.entry, self.chain, self.expected) = (host, entry, chain, expected)
    }

    /// Public-key pins as strings.
    init(
        _ description: String, host: String, _ expected: Expected, position: String? = nil,
        chain: @escaping @Sendable (Parts) throws -> ServedChain = { ServedChain($0.leaf) },
        pins: @escaping @Sendable (Parts) async throws -> [String]
    ) {
        self.init(description, host: host, expected, chain: chain) { parts in
            let pins = try await pins(parts).joined(separator: ", ")
            return ["pinning: public-key", "pins: [\(pins)]"] + (position.map { ["position: \($0)"] } ?? [])
        }
    }

    /// Certificates to be pinned whole.
    init(
        _ description: String, host: String, _ expected: Expected,
        chain: @escaping @Sendable (Parts) throws -> ServedChain = { ServedChain($0.leaf) },
        certificates: @escaping @Sendable (Parts) throws -> [HeldCertificate]
    ) {
        self.init(description, host: host, expected, chain: chain) { parts in
            let files = try certificates(parts).enumerated()
                .map { "{file: \(try parts.file("\($0.offset)", $0.element.pem))}" }
            return ["pinning: certificate", "pins: [\(files.joined(separator: ", "))]"]
        }
    }

    private static let mismatch = Expected.refused(502, "pinning failure")

    static let all: [PinCase] = [
        PinCase("the leaf's key", host: "leaf-key.test", .accepted) { [try await $0.leaf.pin($0.bed)] },
        PinCase("the intermediate's key", host: "intermediate-key.test", .accepted) {
            [try await $0.roots.intermediate.pin($0.bed)]
        },
        PinCase("the root's key, though the root is not sent", host: "root-key.test", .accepted) {
            [try await $0.roots.root.pin($0.bed)]
        },
        PinCase("a wrong key", host: "wrong-key.test", mismatch) { _ in [.wrongPin] },
        PinCase("a backup key beside a wrong one", host: "backup.test", .accepted) {
            [.wrongPin, try await $0.leaf.pin($0.bed)]
        },
        PinCase("a key from a certificate file", host: "certificate-file.test", .accepted) {
            ["{file: \(try $0.file("leaf", $0.leaf.pem))}"]
        },
        PinCase("a key from a public-key file", host: "key-file.test", .accepted) {
            ["{file: \(try $0.file("key", $0.leaf.key.publicKeyPEM))}"]
        },
        PinCase("the leaf's key as the leaf's", host: "position-leaf.test", .accepted, position: "leaf") {
            [try await $0.leaf.pin($0.bed)]
        },
        PinCase("the intermediate's key as the leaf's", host: "position-not-leaf.test", mismatch, position: "leaf") {
            [try await $0.roots.intermediate.pin($0.bed)]
        },
        PinCase("the intermediate's key as the issuer's", host: "position-issuer.test", .accepted, position: "issuer") {
            [try await $0.roots.intermediate.pin($0.bed)]
        },
        PinCase("the root's key as the root's", host: "position-root.test", .accepted, position: "root") {
            [try await $0.roots.root.pin($0.bed)]
        },
        PinCase("the leaf's key as the root's", host: "position-not-root.test", mismatch, position: "root") {
            [try await $0.leaf.pin($0.bed)]
        },
        // CVE-2016-2402: certificates that the peer merely appends don't count.
        PinCase(
            "the pinned key in a certificate appended to another chain", host: "appended-key.test", mismatch,
            chain: { ServedChain($0.leaf, followedBy: [$0.roots.intermediate, $0.strangers.intermediate]) }
        ) { [try await $0.strangers.intermediate.pin($0.bed)] },
        PinCase(
            "the pinned certificate appended to another chain", host: "appended-certificate.test", .refused(502, ""),
            chain: { ServedChain($0.leaf, followedBy: [$0.roots.intermediate, $0.strangers.intermediate]) },
            certificates: { [$0.strangers.intermediate] }),
        PinCase(
            "the right key in a chain that nobody vouches for", host: "untrusted.test", .refused(502, "certificate"),
            chain: { ServedChain(try $0.strangers.leaf("untrusted.test") { _ in }) }
        ) { [try await $0.strangers.intermediate.pin($0.bed)] },
        PinCase("the leaf's certificate", host: "leaf-certificate.test", .accepted) { [$0.leaf] },
        PinCase("the intermediate's certificate", host: "intermediate-certificate.test", .accepted) {
            [$0.roots.intermediate]
        },
        PinCase("the root's certificate", host: "root-certificate.test", .accepted) { [$0.roots.root] },
        PinCase("another authority's certificate", host: "other-certificate.test", .refused(502, "")) {
            [$0.strangers.root]
        },
        PinCase("another certificate for the same key", host: "renewed-certificate.test", .refused(502, "")) { parts in
            let key = parts.leaf.key
            return [try parts.roots.leaf("renewed-certificate.test") { $0.keyPair = key }]
        },
        PinCase(
            "a mismatch that is only reported", host: "report.test", .accepted,
            entry: { _ in
                ["pinning: public-key", "pins: [\(String.wrongPin)]", "enforcement: report"]
            }),
        PinCase("no pinning", host: "none.test", .accepted, entry: { _ in ["pinning: none"] }),
        PinCase("denied", host: "deny.test", .refused(403, "denied"), entry: { _ in ["action: deny"] }),
        PinCase("tunnelled", host: "tunnel.test", .accepted, entry: { _ in ["action: tunnel"] }),
        PinCase("no entry", host: "no-entry.test", .accepted, entry: { _ in nil }),
    ]
}

extension PinCase {
    /// Names, and whether one of the entries with a wrong pin applies to them.
    static let patterns: [(name: String, isPinned: Bool)] = [
        ("one.test", false), ("a.one.test", true), ("a.b.one.test", false),
        ("any.test", true), ("a.any.test", true), ("a.b.c.any.test", true), ("many.test", false),
        ("exact.any.test", false), ("safe.any.test", false), ("a.safe.any.test", false),
        ("port.test", true), ("other-port.test", false),
        ("xn--bcher-kva.test", true), ("a.xn--bcher-kva.test", false),
    ]

    /// One nginx with a site for each case, one proxy with an entry for each.
    @Sendable static func prepare(_ bed: TestBed) async throws -> SharedBed {
        let roots = try TestRoots()
        let strangers = try TestRoots("Stranger")
        var sites: [NginxOrigin.Site] = []
        var pins = "hosts:\n"
        var hosts: [String: String] = [:]
        func add(match: String, _ lines: [String]?) {
            guard let lines else { return }
            pins += "  - match: \"\(match)\"\n" + lines.map { "    \($0)\n" }.joined()
        }
        for test in all {
            let parts = Parts(
                bed: bed, roots: roots, strangers: strangers, leaf: try roots.leaf(test.host))
            sites.append(.init(name: test.host, chain: try test.chain(parts)))
            hosts[test.host] = "127.0.0.1"
            add(match: test.host, try await test.entry(parts))
        }
        for (name, _) in patterns {
            sites.append(.init(name: name, chain: try roots.chain(name)))
            hosts[name] = "127.0.0.1"
        }
        let wrong = ["pinning: public-key", "pins: [\(String.wrongPin)]"]
        add(match: "*.one.test", wrong)
        add(match: "**.any.test", wrong)
        add(match: "**.safe.any.test", ["pinning: none"])
        add(match: "exact.any.test", ["pinning: none"])
        add(match: "Bücher.test", wrong)
        let nginx = try await NginxOrigin(in: bed, sites: sites)
        add(match: "port.test:\(nginx.port)", wrong)
        add(match: "other-port.test:\(nginx.port - 1)", wrong)
        let proxy = try await ProxyProcess(in: bed, pins: pins, trust: roots.write(to: bed), hosts: hosts)
        return SharedBed(bed: bed, proxy: proxy, originPort: nginx.port)
    }
}

@Suite(.sharedBed(PinCase.prepare), .timeLimit(.minutes(5)))
struct PinTests {
    @Test(arguments: PinCase.all)
    func aChainMeetsAnEntry(_ test: PinCase) async throws {
        let shared = try sharedBed()
        let answer = try await shared.proxy.connect(to: "\(test.host):\(shared.originPort)")
        test.expected.check(answer, host: test.host)
    }

    @Test(arguments: PinCase.patterns)
    func theMostSpecificEntryDecides(name: String, isPinned: Bool) async throws {
        let shared = try sharedBed()
        let answer = try await shared.proxy.connect(to: "\(name):\(shared.originPort)")
        (isPinned ? Expected.refused(502, "pinning failure") : .accepted).check(answer, host: name)
    }

    @Test func aRefusalShowsThePinsReadyToPaste() async throws {
        let shared = try sharedBed()
        let answer = try await shared.proxy.connect(to: "wrong-key.test:\(shared.originPort)")
        let dump = try await shared.bed.run([
            "/bin/sh", "-c",
            """
            openssl s_client -connect 127.0.0.1:\(shared.originPort) -servername wrong-key.test </dev/null \
            2>/dev/null | openssl x509 -noout -pubkey | openssl pkey -pubin -outform der | \
            openssl dgst -sha256 -binary | base64
            """,
        ])
        #expect(!dump.output.isEmpty)
        // JSON may write a slash as \/.
        let text = answer.body.replacingOccurrences(of: "\\/", with: "/")
        #expect(text.contains("sha256/" + dump.output), "\(answer)")
        #expect(text.contains(String.wrongPin), "\(answer)")
        #expect(answer["Proxy-Status"]?.contains("sha256/" + dump.output) == true, "\(answer)")
        let event = try await shared.proxy.events.first("pin.mismatch") {
            $0["host"]?.contains("wrong-key.test") == true
        }
        #expect(event["host"] == "wrong-key.test")
    }

    @Test func aRefusalIsAPageForBrowsers() async throws {
        let shared = try sharedBed()
        let answer = try await shared.proxy.connect(
            to: "wrong-key.test:\(shared.originPort)", fields: "Accept: text/html,*/*;q=0.8\r\n")
        #expect(answer.status == 502)
        #expect(answer["Content-Type"]?.hasPrefix("text/html") == true)
        #expect(answer.body.contains("wrong-key.test"))
    }

    /// curl itself turns the name into A-labels, in a locale that has the letters.
    @Test func aNameOfAnotherAlphabetIsHeldToItsEntry() async throws {
        let shared = try sharedBed()
        let url = "https://bücher.test:\(shared.originPort)/hello"
        var environment = shared.proxy.clientEnvironment
        environment["LC_ALL"] = "C.UTF-8"
        let run = try await shared.bed.run(["curl", "-sS", url], environment: environment)
        #expect(run.errors.contains("502"), "\(run)")
        let event = try await shared.proxy.events.first("pin.mismatch") { $0["host"]?.contains("xn--bcher") == true }
        #expect(event["entry"]?.contains("xn--bcher-kva.test") == true, "\(event)")
    }

    @Test func aMismatchThatIsOnlyReportedIsLogged() async throws {
        let shared = try sharedBed()
        #expect(try await shared.proxy.connect(to: "report.test:\(shared.originPort)").status == 200)
        let event = try await shared.proxy.events.first("pin.report")
        #expect(event["host"] == "report.test")
    }

    @Test func aTunnelShowsTheOriginsOwnCertificate() async throws {
        let shared = try sharedBed()
        // The client trusts the origin's root and not the proxy's authority.
        let run = try await shared.bed.run([
            "curl", "-sS", "--proxy", shared.proxy.url, "--cacert", shared.bed.path("roots.pem"),
            "https://tunnel.test:\(shared.originPort)/hello",
        ])
        #expect(run.output == "hello", "\(run)")
    }
}
