import Foundation
import PinproxyConfiguration
import PinproxySecurity
import PinproxyTLS
import Testing

@testable import pinproxy

/// The changes that `learn` suggests for the pin file, applied by the real `patch`, and read back.
@Suite struct LearnDiffTests {
    private static let now: UnixTime = 1_893_456_000
    /// 32 bytes that are all the same, as a pin.
    private static func pin(_ byte: UInt8) -> String {
        "sha256/\(SHA256Digest(bytes: [UInt8](repeating: byte, count: 32))!.base64)"
    }
    private static func fingerprint(_ byte: UInt8) -> String {
        "cert-sha256/\(SHA256Digest(bytes: [UInt8](repeating: byte, count: 32))!.hex)"
    }
    private static let (leaf, issuer, root) = (pin(1), pin(2), pin(3))

    /// One host's chain of leaf, issuer and root, with keys and certificates 1, 2 and 3.
    private static func host(
        _ name: String, port: Int = 443, leaf: UInt8 = 1, matched: String? = nil, subject: String = "CN=leaf"
    ) throws -> (String, [String: Any]) {
        let links = [(leaf, subject, "CN=issuer"), (2, "CN=issuer", "CN=root"), (3, "CN=root", "CN=root")].map {
            ["key": pin($0.0), "certificate": fingerprint($0.0), "subject": $0.1, "issuer": $0.2, "notAfter": now]
                as [String: Any]
        }
        var chain: [String: Any] = ["links": links, "count": 3, "first": now - 86_400, "last": now]
        if let matched { chain["matched"] = matched }
        return ("\(name):\(port)", ["name": name, "port": port, "chains": [chain]])
    }

    private static func history(_ hosts: (String, [String: Any])...) throws -> ChainHistory {
        let object: [String: Any] = ["hosts": Dictionary(uniqueKeysWithValues: hosts)]
        return try JSONDecoder().decode(ChainHistory.self, from: JSONSerialization.data(withJSONObject: object))
    }

    private struct Outcome {
        let diff: String
        /// The pin file after `patch`.
        let text: String
        let snapshot: Snapshot
        let remarks: [String]

        func pins(_ host: String, port: UInt16 = 443) -> [String]? {
            snapshot.entry(for: host, port: port)?.policy.pins.pins.map(\.description)
        }
    }

    /// Makes the diff, applies it with `patch`, and reads the result as `check` does.
    private func learn(
        _ history: ChainHistory, _ pins: String, with tool: [String] = ["patch", "-p0", "-i"]
    ) throws -> Outcome {
        let bed = try CommandBed(configuration: "pins: pins.yaml\n")
        try bed.write("pins.yaml", pins)
        let load = { try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.path("state")) }
        let learned = LearnedPins(history, snapshot: try load())
        var lines = PinFileLines(pins)
        for addition in learned.additions { lines.add(addition) }
        lines.append(learned.entries)
        let diff = lines.text.diff(of: "pins.yaml")
        if !diff.isEmpty {
            try bed.write("learned.diff", diff)
            let run = try CommandBed.run(
                ["/usr/bin/env"] + tool + ["learned.diff"], in: bed.directory, environment: bed.environment)
            #expect(run.code == 0, "\(run)\n\(diff)")
            // No fuzz, no offset: each line was where the diff says.
            #expect(!run.output.contains("offset") && !run.output.contains("fuzz"), "\(run.output)")
        }
        return Outcome(diff: diff, text: try bed.read("pins.yaml"), snapshot: try load(), remarks: learned.remarks)
    }

    // MARK: Hosts without an entry

    @Test(arguments: [
        "hosts: []\n", "hosts:\n", "hosts: null   # none yet\n", "hosts: []", "defaults:\n  action: intercept\n",
        "defaults:\n  action: intercept", "hosts:\n  - match: other.test\n    action: deny\n",
        "hosts:\n  - match: other.test\n    action: deny", "hosts:\n- match: other.test\n  action: deny\n",
        "hosts:\n    -   match: other.test\n        action: deny\n\n# the end\n",
        "hosts:\n  - match: other.test\n    action: deny\n#    enforcement: report\n\ndefaults:\n  action: intercept\n",
        """
        # one\n# two\n# three\n# four\nhosts:   # all\n\n\n  - {match: other.test, action: deny}\n# five\n\ndefaults: \
        {action: intercept}\n
        """,
        "hosts:\r\n  - match: other.test\r\n    action: deny\r\n",
    ]) func aNewHostGetsAnEntryThatReports(pins: String) throws {
        for tool in [["patch", "-p0", "-i"], ["git", "apply", "-p0", "--unidiff-zero"]] {
            let outcome = try learn(
                try Self.history(Self.host("new.test"), Self.host("new.test", port: 8443)), pins, with: tool)
            #expect(outcome.pins("new.test") == [Self.leaf, Self.issuer], "\(outcome.text)")
            #expect(outcome.pins("new.test", port: 8443) == [Self.leaf, Self.issuer])
            let policy = outcome.snapshot.entry(for: "new.test", port: 443)?.policy
            #expect(policy?.enforcement == .report)
            #expect(policy?.mode == .publicKey)
            if pins.contains("other.test") {
                #expect(outcome.snapshot.entry(for: "other.test", port: 443)?.action == .deny)
            }
            // Everything that was there still is.
            let kept = pins.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("hosts:") }
            #expect(kept.allSatisfy { outcome.text.contains($0) })
        }
    }

    @Test func addressesAreWrittenSoThatTheyCanBeRead() throws {
        let outcome = try learn(
            try Self.history(Self.host("192.0.2.7"), Self.host("2001:db8::1"), Self.host("2001:db8::1", port: 8443)),
            "hosts: []\n")
        #expect(outcome.pins("192.0.2.7") != nil)
        #expect(outcome.pins("2001:db8::1") != nil)
        #expect(outcome.pins("2001:db8::1", port: 8443) != nil, "\(outcome.text)")
    }

    /// An entry without an action would be intercepted.
    @Test func aNewEntryKeepsTheActionThatTheHostHadByDefault() throws {
        let outcome = try learn(
            try Self.history(Self.host("new.test")), "defaults:\n  action: verify-tunnel\nhosts: []\n")
        #expect(outcome.snapshot.entry(for: "new.test", port: 443)?.action == .verifyTunnel)
        #expect(outcome.pins("new.test") == [Self.leaf, Self.issuer])
    }

    /// A certificate's subject is untrusted text.
    @Test func aSubjectCannotAddToTheFile() throws {
        let evil = "CN=x\n  - match: evil.test\u{2028}  - match: evil.test\u{85}\r  - match: evil.test"
        let outcome = try learn(try Self.history(Self.host("new.test", subject: evil)), "hosts: []\n")
        #expect(outcome.snapshot.hosts.entries.count == 1, "\(outcome.text)")
        #expect(outcome.snapshot.entry(for: "evil.test", port: 443) == nil)
    }

    @Test func entriesInBracketsAreGivenAsAComment() throws {
        let outcome = try learn(
            try Self.history(Self.host("new.test")), "hosts: [{match: other.test, action: deny}]\n")
        #expect(outcome.snapshot.hosts.entries.count == 1)
        #expect(outcome.text.contains("# - match: new.test"))
        #expect(outcome.text.contains("#     - \(Self.leaf)"), "\(outcome.text)")
    }

    // MARK: Hosts with an entry

    private func entry(_ lines: String..., match: String = "api.test") -> String {
        "hosts:\n  - match: \(match)\n" + lines.map { "    \($0)\n" }.joined() + "  - match: z.test\n    action: deny\n"
    }

    @Test(arguments: [
        "hosts:\n  - match: api.test\n    pinning: public-key\n    enforcement: report\n    pins:\n      - PIN\n",
        "hosts:\n  - match: api.test\n    pinning: public-key\n    enforcement: report\n    pins:\n      - PIN",
        """
        hosts:\n  - match: api.test\n    pins:   # mine\n    # the first\n\n    - PIN   # old\n    # after\n    \
        enforcement: report\n    pinning: public-key\n
        """,
        """
        hosts:\n- pins:\n  - PIN\n  match: api.test\n  pinning: public-key\n  enforcement: report\n- match: z.test\n  \
        action: deny\n
        """,
        """
        hosts:
          -
            pinning: public-key
            pins:
              - file: key.pem
              - PIN
            match: "api.test"
            enforcement: report

        """,
    ]) func aPinThatIsMissingIsAddedToTheList(pins: String) throws {
        let text = pins.replacingOccurrences(of: "PIN", with: Self.pin(9)).replacingOccurrences(
            of: "file: key.pem", with: Self.pin(8))
        let isPlain = !pins.contains("  -\n")
        let outcome = try learn(try Self.history(Self.host("api.test")), text)
        if isPlain {
            #expect(outcome.pins("api.test") == [Self.pin(9), Self.leaf, Self.issuer], "\(outcome.text)")
        } else {
            // A dash alone on its line: the advice is a comment, and nothing else changes.
            #expect(outcome.pins("api.test")?.contains(Self.pin(9)) == true)
            #expect(outcome.text.contains(Self.leaf))
        }
        let policy = outcome.snapshot.entry(for: "api.test", port: 443)?.policy
        #expect(policy?.enforcement == .report)
        #expect(outcome.diff.split(separator: "\n").filter { $0.hasPrefix("-") && !$0.hasPrefix("---") }.count <= 1)
    }

    @Test func aPinThatMatchedLacksOnlyItsBackup() throws {
        let one = try learn(
            try Self.history(Self.host("api.test", matched: Self.leaf)),
            entry("pinning: public-key", "pins:", "  - \(Self.leaf)"))
        #expect(one.pins("api.test") == [Self.leaf, Self.issuer])
        let two = try learn(
            try Self.history(Self.host("api.test", matched: Self.leaf)),
            entry("pinning: public-key", "pins:", "  - \(Self.leaf)", "  - \(Self.pin(9))"))
        #expect(two.diff == "")
        // A pin above the issuer matched; its key is not among the candidates.
        let root = try learn(
            try Self.history(Self.host("api.test", matched: Self.root)),
            entry("pinning: public-key", "pins:", "  - \(Self.root)", "  - \(Self.pin(9))"))
        #expect(root.diff == "")
    }

    @Test(arguments: [("leaf", [leaf]), ("issuer", [issuer]), ("root", [root]), ("any", [leaf, issuer])])
    func onlyPinsThatMayMatchAreAdded(position: String, added: [String]) throws {
        let outcome = try learn(
            try Self.history(Self.host("api.test")),
            entry("pinning: public-key", "position: \(position)", "enforcement: report", "pins:", "  - \(Self.pin(9))"))
        #expect(outcome.pins("api.test") == [Self.pin(9)] + added)
    }

    @Test func wholeCertificatesArePinnedByTheirFingerprints() throws {
        let outcome = try learn(
            try Self.history(Self.host("api.test")),
            entry("pinning: certificate", "enforcement: report", "pins:", "  - \(Self.fingerprint(9))"))
        #expect(outcome.pins("api.test") == [9, 1, 2].map(Self.fingerprint))
    }

    @Test func hostsUnderAWildcardShareItsEntry() throws {
        let outcome = try learn(
            try Self.history(Self.host("a.api.test"), Self.host("b.api.test", leaf: 4)),
            entry("pinning: public-key", "enforcement: report", "pins:", "  - \(Self.pin(9))", match: "\"*.api.test\""))
        #expect(outcome.pins("a.api.test") == [Self.pin(9), Self.leaf, Self.pin(4), Self.issuer])
        #expect(outcome.snapshot.hosts.entries.count == 2)
    }

    /// A host's observation says nothing about others; the wildcard's other keys still apply to the host.
    @Test(arguments: [
        "    pinning: none\n    min_tls: 1.3\n    record: true\n",
        "    min_tls: 1.3   # of old\n    pinning: none\n\n    # why\n    record: true\n",
    ]) func aHostOfAWildcardWithoutPinsGetsAnEntryOfItsOwn(keys: String) throws {
        let outcome = try learn(
            try Self.history(Self.host("a.api.test")),
            "hosts:\n  - match: \"*.api.test\"\n\(keys)  - match: z.test\n    action: deny\n")
        #expect(outcome.pins("a.api.test") == [Self.leaf, Self.issuer], "\(outcome.text)")
        #expect(outcome.pins("b.api.test") == [], "\(outcome.text)")
        let entry = try #require(outcome.snapshot.entry(for: "a.api.test", port: 443))
        #expect(entry.pattern == "a.api.test")
        #expect(entry.policy.enforcement == .report)
        #expect(entry.policy.requirements.minimumTLS == .tls13)
        #expect(entry.records)
        #expect(
            !outcome.diff.split(separator: "\n").contains { $0.hasPrefix("-") && !$0.hasPrefix("---") },
            "\(outcome.diff)")
    }

    @Test func keysThatCannotBeCopiedAreAskedFor() throws {
        let outcome = try learn(
            try Self.history(Self.host("a.api.test")),
            "hosts:\n  - {match: \"*.api.test\", min_tls: 1.3}\n")
        #expect(outcome.pins("a.api.test") == [Self.leaf, Self.issuer], "\(outcome.text)")
        #expect(
            outcome.text.contains("# copy the other keys of line 2 here: entries are not merged"), "\(outcome.text)")
    }

    @Test(arguments: [
        ["record: true"], ["record: true", "pinning: none"], ["pinning: none   # for now", "record: true"],
        ["record: true", "position: any"],
    ]) func anEntryWithoutPinsGetsThem(lines: [String]) throws {
        let text = "hosts:\n  - match: api.test\n" + lines.map { "    \($0)\n" }.joined()
        let outcome = try learn(try Self.history(Self.host("api.test")), text)
        #expect(outcome.pins("api.test") == [Self.leaf, Self.issuer], "\(outcome.text)")
        #expect(outcome.snapshot.entry(for: "api.test", port: 443)?.policy.enforcement == .report)
        #expect(outcome.snapshot.entry(for: "api.test", port: 443)?.records == true)
    }

    @Test(arguments: [
        "hosts:\n  - {match: api.test, pinning: public-key, enforcement: report, pins: [PIN]}\n",
        "hosts: [{match: api.test, pinning: public-key, enforcement: report, pins: [PIN]}]\n",
        "hosts:\n  - match: api.test\n    pinning: public-key\n    enforcement: report\n    pins: [PIN]\n",
        "hosts:\n  - match: api.test\n    pinning: public-key\n    enforcement: report\n    pins:\n      [PIN]\n",
        "{hosts: [\n  {match: api.test, pinning: public-key, enforcement: report,\n    pins: [PIN]}]}\n",
    ]) func whatIsWrittenInBracketsGetsAComment(pins: String) throws {
        let outcome = try learn(
            try Self.history(Self.host("api.test")), pins.replacingOccurrences(of: "PIN", with: Self.pin(9)))
        #expect(outcome.pins("api.test") == [Self.pin(9)])
        #expect(outcome.text.contains("#   - \(Self.leaf)"), "\(outcome.text)")
        #expect(outcome.text.contains("#   - \(Self.issuer)"))
    }

    @Test func hostsThatAreNotInterceptedAreLeftAlone() throws {
        for action in ["tunnel", "deny"] {
            #expect(try learn(try Self.history(Self.host("api.test")), entry("action: \(action)")).diff == "")
        }
    }

    @Test func placesFarApartAreHunksOfTheirOwn() throws {
        let filler = (0..<20).map { "  - match: filler\($0).test\n    action: deny\n" }.joined()
        let outcome = try learn(
            try Self.history(Self.host("api.test"), Self.host("b.test"), Self.host("new.test")),
            """
            hosts:\n  - match: api.test\n    pinning: public-key\n    enforcement: report\n    pins:\n      - \
            \(Self.pin(9))\n
            """
                + filler + "  - match: b.test\n    pinning: none\n    record: true\n"
                + filler.replacingOccurrences(of: "filler", with: "more"))
        #expect(outcome.diff.split(separator: "\n").count { $0.hasPrefix("@@ ") } == 3, "\(outcome.diff)")
        #expect(outcome.pins("api.test") == [Self.pin(9), Self.leaf, Self.issuer])
        #expect(outcome.pins("b.test") == [Self.leaf, Self.issuer])
        #expect(outcome.pins("new.test") == [Self.leaf, Self.issuer])
        #expect(outcome.snapshot.hosts.entries.count == 43)
    }
}
