import Foundation
import PinproxyBundles
import PinproxySecurity
import PinproxySerialization
import PinproxyTLS
import Testing

@testable import PinproxyConfiguration

/// A configuration with a signed bundle: what applies to the bundle, and to the machine's own pin file beside it.
@Suite struct PolicyTests {
    /// 2027-01-15T08:00:00Z.
    private static let now: Int64 = 1_800_000_000
    private static let pins = ["A", "B", "C"].map {
        "sha256/\(String(repeating: $0, count: 42))\($0 == "A" ? "A" : "Y")="
    }

    /// An Ed25519 private key in PKCS#8 (RFC 8410 section 7), with `number` as each of its 32 bytes.
    private static func key(_ number: UInt8) throws -> SigningKey {
        let seed = [UInt8](repeating: number, count: 32)
        let der: [UInt8] = [0x30, 0x2E, 2, 1, 0, 0x30, 5, 6, 3, 0x2B, 0x65, 0x70, 4, 0x22, 4, 0x20] + seed
        return try SigningKey(
            pem: Array("-----BEGIN PRIVATE KEY-----\n\(Base64.encode(der))\n-----END PRIVATE KEY-----\n".utf8))
    }

    private static func settings(_ key: SigningKey) throws -> PolicySettings {
        PolicySettings(
            bundle: try #require(try? ServiceURL.parse("https://policy.test/b", example: "", purpose: "").get()),
            keys: [key.publicKey], threshold: 1, interval: .seconds(300), groups: [], onExpiry: .keep)
    }

    private static func bundle(
        _ files: [String: String], version: Int = 1, expires: Int64 = now + 86_400, local: LocalRule = .tighten,
        groups: [String] = [], timestampExpires: Int64? = nil
    ) throws -> KeptBundle {
        let key = try key(1)
        let role = try RoleKeys([key.publicKey], threshold: 1)
        var document = BundleDocument()
        var root = BundleRoot(version: 1, expires: now + 864_000, root: role, bundle: role, timestamp: role).envelope
        var bundle = try PolicyBundle.envelope(
            version: version, expires: expires, groups: groups,
            files: files.map { BundleFile(path: $0.key, bytes: Array($0.value.utf8)) }, local: local)
        var timestamp = BundleTimestamp(version: 1, expires: timestampExpires ?? expires, for: try PolicyBundle(bundle))
            .envelope
        try root.sign(with: key)
        try bundle.sign(with: key)
        try timestamp.sign(with: key)
        document.roots = [root]
        document.bundle = bundle
        document.timestamp = timestamp
        let bytes = try document.bytes()
        let state = try BundleVerifier(keys: [key.publicKey], threshold: 1).verify(bytes, after: nil, at: now).state
        return KeptBundle(bytes: bytes, state: state, accepted: now, tag: nil, by: try settings(key))
    }

    private func bed(
        _ own: String?, onExpiry: String = "keep", _ more: [String: String] = [:]
    ) throws -> ConfigurationBed {
        let policy = """
            policy: {bundle: "https://policy.test/b", keys: [\(try Self.key(1).publicKey.text)], on_expiry: \(onExpiry)}
            pins: \(own == nil ? "null" : "pins/hosts.yaml")

            """
        return try ConfigurationBed(pins: own ?? "hosts: []\n", more.merging(["pinproxy.yaml": policy]) { $1 })
    }

    private func load(_ bed: ConfigurationBed, at now: Int64 = now) throws(ConfigurationProblems) -> Snapshot {
        try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state"), at: now)
    }

    private func keep(_ bundle: KeptBundle, in bed: ConfigurationBed) throws {
        try bed.write("state/policy.json", Array(try JSONEncoder().encode(bundle)))
    }

    @Test func bothFilesHold() throws {
        let bed = try bed(
            "hosts:\n  - {match: own.test, action: deny}\n",
            ["pins/hosts.d/more.yaml": "hosts:\n  - {match: more.test, pinning: none}\n"])
        try keep(
            Self.bundle([
                "pins.yaml": """
                defaults: {min_tls: 1.3}
                include: team.yaml
                hosts:
                  - {match: api.test, pinning: public-key, pins: [\(Self.pins[0])]}
                  - {match: file.test, pinning: certificate, pins: [{file: ./certs//ca.pem}]}
                """,
                "team.yaml": "hosts:\n  - {match: team.test, action: tunnel}\n",
                "pins.d/a.yaml": "hosts:\n  - {match: d.test, action: deny}\n",
                "certs/ca.pem": try String(contentsOfFile: bed.path("ca.pem"), encoding: .utf8),
            ]), in: bed)
        let snapshot = try load(bed)
        #expect(snapshot.bundle?.version == 1)
        #expect(snapshot.denial == nil)
        #expect(snapshot.entry(for: "api.test", port: 443)?.location == "bundle:/pins.yaml:4")
        #expect(snapshot.entry(for: "file.test", port: 443)?.policy.mode == .certificate)
        #expect(snapshot.entry(for: "team.test", port: 443)?.action == .tunnel)
        #expect(snapshot.entry(for: "d.test", port: 443)?.action == .deny)
        #expect(snapshot.entry(for: "own.test", port: 443)?.action == .deny)
        #expect(snapshot.entry(for: "more.test", port: 443)?.policy.requirements.minimumTLS == .tls13)
        #expect(snapshot.defaultPolicy.requirements.minimumTLS == .tls13)
        #expect(snapshot.pinFile == bed.path("pins/hosts.yaml"))
    }

    @Test func withoutAPinFileOfItsOwn() throws {
        let bed = try bed(nil)
        try keep(Self.bundle(["pins.yaml": "hosts:\n  - {match: api.test, action: deny}\n"]), in: bed)
        #expect(try load(bed).entry(for: "api.test", port: 443)?.action == .deny)
    }

    /// The bundle's hosts, the machine's own entry, and the error about it; nil: it is allowed.
    @Test(arguments: [
        (
            "{match: a.test, pinning: public-key, pins: [P0, P1]}", "{match: a.test, pinning: public-key, pins: [P0]}",
            nil
        ),
        ("{match: a.test, pinning: public-key, pins: [P0, P1]}", "{match: a.test, action: deny}", nil),
        (
            "{match: a.test, pinning: public-key, pins: [P0], enforcement: report}",
            "{match: a.test, pinning: public-key, pins: [P0]}", nil
        ),
        ("{match: a.test, action: tunnel}", "{match: a.test, pinning: public-key, pins: [P0]}", nil),
        ("{match: a.test, pinning: none}", "{match: a.test, min_tls: 1.3, pinning: none}", nil),
        ("{match: \"**.test\", action: deny}", "{match: a.example, pinning: none}", nil),
        ("{match: \"a.test:8443\", action: deny}", "{match: a.test, pinning: none}", nil),
        (
            "{match: a.test, pinning: public-key, pins: [P0]}", "{match: a.test, pinning: none}",
            "pinning is public-key there"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0]}",
            "{match: a.test, pinning: public-key, pins: [P0, P1]}", "the bundle doesn't have the pin P1"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0]}",
            "{match: a.test, pinning: public-key, pins: [P0], enforcement: report}", "enforcement: report"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0]}",
            "{match: a.test, pinning: public-key, pins: [P0], allow_invalid_certificates: true}",
            "allow_invalid_certificates"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0], position: leaf}",
            "{match: a.test, pinning: public-key, pins: [P0]}", "position is leaf there"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0]}", "{match: a.test, action: tunnel}",
            "action is intercept there, and tunnel here"
        ),
        (
            "{match: a.test, action: verify-tunnel, pinning: none}", "{match: a.test, action: tunnel}",
            "action is verify-tunnel there, and tunnel here"
        ),
        ("{match: a.test, action: deny}", "{match: a.test, pinning: none}", "the host is denied there"),
        ("{match: \"*.test\", action: deny}", "{match: a.test, pinning: none}", "the host is denied there"),
        ("{match: \"**.test\", action: deny}", "{match: a.b.test, pinning: none}", "the host is denied there"),
        ("{match: \"**.test\", action: deny}", "{match: \"*.b.test\", pinning: none}", "the host is denied there"),
        ("{match: \"**.test\", action: deny}", "{match: \"**.b.test\", pinning: none}", "the host is denied there"),
        ("{match: a.test, action: deny}", "{match: \"a.test:443\", pinning: none}", "the host is denied there"),
        ("{match: \"*.test:443\", action: deny}", "{match: a.test, pinning: none}", "the host is denied there"),
        (
            "{match: a.test, min_tls: 1.3, pinning: none}", "{match: a.test, min_tls: 1.2, pinning: none}",
            "min_tls: 1.2"
        ),
        ("{match: a.test, ocsp: require, pinning: none}", "{match: a.test, pinning: none}", "ocsp: if-stapled"),
        (
            "{match: a.test, max_leaf_lifetime: 90d, pinning: none}", "{match: a.test, pinning: none}",
            "max_leaf_lifetime is longer"
        ),
        (
            "{match: a.test, pinning: none, response: {status: [200]}}", "{match: a.test, pinning: none}",
            "that has rules"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0]}",
            "{match: a.test, pinning: public-key, pins: [P0], expires: 2020-01-01, on_expiry: report}",
            "on_expiry: report"
        ),
        (
            "{match: a.test, pinning: none}",
            "{match: a.test, pinning: none, session: {base_url: \"https://x.test/\"}}",
            "base_url sends requests to another host"
        ),
        (
            "{match: a.test, pinning: public-key, pins: [P0], report_uri: \"https://r.test/\"}",
            "{match: a.test, pinning: public-key, pins: [P0]}", "report_uri is another"
        ),
        (
            "{match: 192.0.2.7, action: deny}", "{match: \"64:ff9b::192.0.2.7\", pinning: none}",
            "the host is denied there"
        ),
        ("{match: 192.0.2.7, action: deny}", "{match: \"64:ff9b::192.0.2.8\", pinning: none}", nil),
    ])
    func anOwnEntryMayTighten(_ theirs: String, _ own: String, _ weakness: String?) throws {
        let bed = try bed("hosts:\n  - \(pinned(own))\n")
        try keep(Self.bundle(["pins.yaml": "hosts:\n  - \(pinned(theirs))\n"]), in: bed)
        if let weakness {
            #expect {
                try load(bed)
            } throws: { error in
                let text = "\(error)"
                return text.contains("pins/hosts.yaml:2:") && text.contains("bundle:/pins.yaml:2")
                    && text.contains(pinned(weakness))
            }
        } else {
            let snapshot = try load(bed)
            #expect(snapshot.hosts.values.contains { $0.file.hasSuffix("pins/hosts.yaml") })
        }
        // A bundle that allows it.
        let lenient = try Self.bundle(["pins.yaml": "hosts:\n  - \(pinned(theirs))\n"], local: .any)
        try keep(lenient, in: bed)
        #expect(try load(bed).hosts.values.contains { $0.file.hasSuffix("pins/hosts.yaml") })
    }

    private static let first = "enforcement: report, enforce_from: 2026-01-01"
    private static let second = "enforcement: report, enforce_from: 2026-01-02"
    private static let after = "enforcement: report, enforce_after: {matches: 100, days: 14}"

    /// Other keys of both entries: the machine's own may enforce pins earlier, or on more machines.
    @Test(arguments: [
        ("", first, "enforce_from, where the pins are enforced there"),
        ("", after, "enforce_after, where the pins are enforced there"),
        ("", "stage: 99%", "stage, where the pins are enforced there"),
        (first, first, nil), (second, first, nil), (first, "", nil), (after, after, nil),
        (first, second, "enforce_from: 2026-01-02, where enforce_from is 2026-01-01 there"),
        (first, "enforcement: report", "enforcement: report"),
        (first, after, "enforce_after: {matches: 100, days: 14}, where enforce_from is 2026-01-01 there"),
        ("stage: 10%", "stage: 10%", nil), ("stage: 10%", "stage: 9%", "stage: 9%, where stage is 10% there"),
        ("stage: 10%", "enforcement: report", "enforcement: report"), ("enforcement: report", "stage: 1%", nil),
    ])
    func anOwnEntryMayEnforceEarlier(_ theirs: String, _ own: String, _ weakness: String?) throws {
        let entry = "{match: a.test, pinning: public-key, pins: [P0]"
        try anOwnEntryMayTighten("\(entry), \(theirs)}", "\(entry), \(own)}", weakness)
    }

    /// Of several entries of the bundle, only the deciding one counts.
    @Test(arguments: [
        (
            ["{match: \"**.test\", action: deny}", "{match: a.test, pinning: public-key, pins: [P0, P1]}"],
            "{match: a.test, pinning: public-key, pins: [P0]}", nil
        ),
        (
            [
                "{match: \"*.test\", pinning: public-key, pins: [P1]}",
                "{match: a.test, pinning: public-key, pins: [P0]}",
            ],
            "{match: a.test, pinning: public-key, pins: [P0], position: leaf}", nil
        ),
        (
            ["{match: \"*.test\", pinning: none}", "{match: \"**.test\", action: deny}"],
            "{match: a.test, pinning: none}", nil
        ),
        (
            ["{match: \"*.test:8443\", pinning: none}", "{match: \"**.test\", action: deny}"],
            "{match: \"a.test:8443\", pinning: none}", nil
        ),
        (
            ["{match: \"*.test:8443\", pinning: none}", "{match: \"**.test\", action: deny}"],
            "{match: a.test, pinning: none}", "bundle:/pins.yaml:3: the host is denied there"
        ),
    ])
    func theDecidingEntryCounts(_ theirs: [String], _ own: String, _ weakness: String?) throws {
        let bed = try bed("hosts:\n  - \(pinned(own))\n")
        let hosts = theirs.map { "  - \(pinned($0))\n" }.joined()
        try keep(Self.bundle(["pins.yaml": "hosts:\n\(hosts)"]), in: bed)
        if let weakness {
            #expect { try load(bed) } throws: { "\($0)".contains(weakness) }
        } else {
            _ = try load(bed)
        }
    }

    private func pinned(_ text: String) -> String {
        Self.pins.enumerated().reduce(text) { $0.replacingOccurrences(of: "P\($1.offset)", with: $1.element) }
    }

    @Test func rulesOfTheDefaultsAreNotOverridden() throws {
        let bundle = try Self.bundle([
            "pins.yaml": "defaults: {response: {status: [200]}}\nhosts:\n  - {match: b.test, pinning: none}\n"
        ])
        for host in ["a.test", "b.test"] {
            let bed = try bed("hosts:\n  - {match: \(host), pinning: none, response: {status: null}}\n")
            try keep(bundle, in: bed)
            #expect { try load(bed) } throws: { "\($0)".contains("defaults have rules, and the entry has its own") }
        }
        let bed = try bed("hosts:\n  - {match: a.test, min_tls: 1.3, pinning: none}\n")
        try keep(bundle, in: bed)
        _ = try load(bed)
    }

    /// With `local: any` the machine's defaults apply, and the bundle's are still read.
    @Test func defaultsInBothFiles() throws {
        let bed = try bed("defaults: {min_tls: 1.3}\nhosts: []\n")
        try keep(Self.bundle(["pins.yaml": "defaults: {action: deny}\nhosts: []\n"], local: .any), in: bed)
        let snapshot = try load(bed)
        #expect(snapshot.defaultAction == .intercept)
        #expect(snapshot.defaultPolicy.requirements.minimumTLS == .tls13)
        try keep(Self.bundle(["pins.yaml": "defaults: {acton: deny}\nhosts: []\n"], local: .any), in: bed)
        #expect { try load(bed) } throws: { "\($0)".contains("unknown key \"acton\"") }
    }

    /// A bundle that waits for its stage has a later timestamp, which confirms the one in force.
    @Test func aLaterTimestampConfirmsIt() throws {
        let bed = try bed("hosts: []\n", onExpiry: "deny")
        let bundle = try Self.bundle(["pins.yaml": "hosts: []\n"], timestampExpires: Self.now + 60)
        let other = try Self.bundle(["pins.yaml": ""], version: 2, timestampExpires: Self.now + 7200)
        let later = bundle.state.seeing(other.state)
        try keep(bundle, in: bed)
        #expect(try load(bed, at: Self.now + 60).denial != nil)
        try keep(bundle.knowing(later, tag: nil), in: bed)
        #expect(try load(bed, at: Self.now + 60).bundle?.expires == Self.now + 7200)
        #expect(try load(bed, at: Self.now + 7200).denial != nil)
    }

    /// The machine has moved to another group since then.
    @Test func aBundleForOtherGroupsIsNone() throws {
        let bed = try bed("hosts: []\n", onExpiry: "deny")
        try keep(Self.bundle(["pins.yaml": "hosts: []\n"], groups: ["laptops"]), in: bed)
        #expect(try load(bed).denial?.contains("is for the groups laptops, and this machine is in none") == true)
    }

    /// What isn't in force is read anyway, since it will be.
    @Test func aBrokenPinFileIsAnErrorWhereAllIsDenied() throws {
        let bed = try bed("hosts: 1\n", onExpiry: "deny")
        #expect { try load(bed) } throws: { "\($0)".contains("pins/hosts.yaml:1:8") }
    }

    /// A signer has its own state directory.
    @Test func theBundleMayBeElsewhere() throws {
        let bed = try bed("hosts: []\n", onExpiry: "deny")
        try keep(Self.bundle(["pins.yaml": "hosts: []\n"]), in: bed)
        func load(_ directory: String?) throws -> Snapshot {
            try Snapshot.load(
                bed.path("pinproxy.yaml"), stateDirectory: bed.path("signer"), at: Self.now, policyDirectory: directory)
        }
        #expect(try load(nil).denial != nil)
        let snapshot = try load(bed.path("state"))
        #expect(snapshot.bundle?.version == 1)
        #expect(snapshot.policyFile == bed.path("state/policy.json"))
        #expect(try snapshot.renewed(with: nil).stateDirectory == bed.path("signer"))
    }

    @Test func everyHostIsDeniedWithoutReadingFiles() throws {
        let bed = try bed("hosts:\n  - {match: own.test, pinning: none}\n")
        try keep(Self.bundle(["pins.yaml": "hosts: []\n"]), in: bed)
        let snapshot = Snapshot(denying: "because", try load(bed))
        #expect(snapshot.denial == "because")
        #expect(snapshot.defaultAction == .deny)
        #expect(snapshot.bundle == nil)
        #expect(snapshot.entry(for: "own.test", port: 443) == nil)
    }

    /// The hosts without an entry in the bundle.
    @Test func defaultsAreNotWeakened() throws {
        let bundle = try Self.bundle(["pins.yaml": "defaults: {action: deny}\nhosts: []\n"])
        let adding = try bed("hosts:\n  - {match: a.test, pinning: none}\n")
        try keep(bundle, in: adding)
        #expect { try load(adding) } throws: {
            "\($0)".contains("weaker than the bundle's defaults: the host is denied")
        }
        let defaults = try bed("defaults: {action: intercept}\nhosts: []\n")
        try keep(bundle, in: defaults)
        #expect { try load(defaults) } throws: { "\($0)".contains("defaults: the bundle's hold (version 1)") }
    }

    @Test(arguments: [
        ("hosts:\n  - {match: a.test, pinning: certificate, pins: [{file: ../ca.pem}]}\n", "No such file"),
        ("hosts:\n  - {match: a.test, pinning: none, crl_files: a.crl}\n", "revocation lists aren't part of a bundle"),
        ("hosts: 1\n", "bundle:/pins.yaml:1:8"),
        (
            """
            hosts:
              - match: a.test
                session: {credentials: {user: u, password_file: /etc/hostname}}

            """,
            "password_file: /etc/hostname is a secret or private key, which a bundle never carries"
        ),
        ("include: /etc/pinproxy/*.yaml\nhosts: []\n", "include: /etc/pinproxy/*.yaml"),
        (
            "hosts:\n  - {match: a.test, pinning: certificate, pins: [{file: /etc/ssl/certs/ca-certificates.crt}]}\n",
            "an absolute path"
        ),
    ])
    func aBundleThatIsWrong(_ pins: String, _ problem: String) throws {
        let bed = try bed("hosts: []\n")
        try keep(Self.bundle(["pins.yaml": pins]), in: bed)
        #expect { try load(bed) } throws: { "\($0)".contains(problem) && "\($0)".contains("bundle:/pins.yaml") }
    }

    // MARK: Dates, and no bundle

    @Test(arguments: ["keep", "deny"], [true, false]) func withoutABundleThatHolds(_ onExpiry: String, has: Bool) throws
    {
        let own = "hosts:\n  - {match: own.test, pinning: none}\n"
        let bed = try bed(own, onExpiry: onExpiry)
        let expiry = Self.now + 86_400
        if has { try keep(Self.bundle(["pins.yaml": "hosts:\n  - {match: api.test, action: deny}\n"]), in: bed) }
        for now in [expiry - 1, expiry, expiry + 10 * 86_400] {
            let snapshot = try load(bed, at: now)
            let holds = has && now < expiry
            let denies = !holds && onExpiry == "deny"
            #expect((snapshot.denial != nil) == denies, "\(now)")
            #expect(snapshot.defaultAction == (denies ? .deny : .intercept))
            #expect((snapshot.entry(for: "own.test", port: 443) == nil) == denies)
            #expect((snapshot.entry(for: "api.test", port: 443) != nil) == (has && !denies))
            #expect(snapshot.warnings.contains { $0.description.contains("on_expiry: \(onExpiry)") } == !holds)
        }
    }

    /// Without the file, less could be pinned.
    @Test(arguments: ["", "{", "[]", "{\"bundle\": \"AAAA\"}"]) func aDamagedFileIsAnError(_ text: String) throws {
        let bed = try bed("hosts: []\n")
        try bed.write("state/policy.json", Array(text.utf8))
        #expect { try load(bed) } throws: { "\($0)".contains("state/policy.json") }
    }

    /// The root signed by the configuration's keys may be cut from the file when no machine needs it.
    @Test func aLaterRootIsRemembered() throws {
        let (first, second) = (try Self.key(1), try Self.key(2))
        func root(_ version: Int, _ key: SigningKey, by signers: [SigningKey]) throws -> Envelope {
            let role = try RoleKeys([key.publicKey], threshold: 1)
            var root = BundleRoot(
                version: version, expires: Self.now + 864_000, root: role, bundle: role, timestamp: role
            ).envelope
            for signer in signers { try root.sign(with: signer) }
            return root
        }
        var document = try BundleDocument(Self.bundle(["pins.yaml": "hosts: []\n"]).bytes)
        let verifier = BundleVerifier(keys: [first.publicKey], threshold: 1)
        let known = try verifier.verify(document.bytes(), after: nil, at: Self.now).state
        document.roots = [try root(2, second, by: [first, second])]
        try document.bundle?.sign(with: second)
        try document.timestamp?.sign(with: second)
        let bytes = try document.bytes()
        let state = try verifier.verify(bytes, after: known, at: Self.now).state
        let bed = try bed("hosts: []\n", onExpiry: "deny")
        try keep(
            KeptBundle(bytes: bytes, state: state, accepted: Self.now, tag: nil, by: try Self.settings(first)), in: bed
        )
        #expect(try load(bed).bundle?.version == 1)
    }

    /// The configuration's keys have changed.
    @Test func aBundleByOtherKeysIsNone() throws {
        let bed = try bed("hosts: []\n", onExpiry: "deny")
        try keep(Self.bundle(["pins.yaml": "hosts: []\n"]), in: bed)
        let text = try String(contentsOfFile: bed.path("pinproxy.yaml"), encoding: .utf8)
        try bed.write(
            "pinproxy.yaml",
            Array(
                text.replacingOccurrences(
                    of: try Self.key(1).publicKey.text, with: try Self.key(2).publicKey.text
                ).utf8))
        #expect(try load(bed).denial?.contains("can't be verified") == true)
    }

    @Test(arguments: [
        ("policy: {keys: [K]}", "policy: \"bundle\" is missing"),
        ("policy: {bundle: \"https://p.test/b\"}", "policy: \"keys\" is missing"),
        ("policy: {bundle: \"http://p.test/b\", keys: [K]}", "bundle: a bundle is fetched by https://, not http://"),
        ("policy: {bundle: \"ftp://p.test/b\", keys: [K]}", "bundle: a bundle can't be fetched by ftp:"),
        ("policy: {bundle: \"https://p.test/b\", keys: []}", "keys: the list is empty"),
        ("policy: {bundle: \"https://p.test/b\", keys: [K, K]}", "is there twice"),
        ("policy: {bundle: \"https://p.test/b\", keys: [K], threshold: 2}", "a threshold of 2 can't be met by 1 key"),
        ("policy: {bundle: \"https://p.test/b\", keys: [\"ed25519:AAAA\"]}", "keys: "),
        ("policy: {bundle: \"https://p.test/b\", keys: [K], interval: 1s}", "interval: "),
        (
            "policy: {bundle: \"https://p.test/b\", keys: [K], groups: [\"a b\"]}",
            "groups: \"a b\" is not the name of a group"
        ),
        ("policy: {bundle: \"https://p.test/b\", keys: [K], on_expiry: allow}", "on_expiry: unknown value \"allow\""),
        ("policy: {bundle: \"https://p.test/b\", keys: [K], stage: 1}", "unknown key \"stage\" in \"policy\""),
    ])
    func theSectionIsRead(_ text: String, _ problem: String) throws {
        let bed = try ConfigurationBed([
            "pinproxy.yaml": text.replacingOccurrences(of: "K", with: try Self.key(1).publicKey.text) + "\npins: null\n"
        ])
        let problems = bed.problems()
        #expect(problems.contains { $0.hasPrefix("pinproxy.yaml:1:") && $0.contains(problem) }, "\(problems)")
    }
}
