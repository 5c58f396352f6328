import PinproxyTestAuthority
import Testing

@testable import PinproxyConfiguration

/// Files in `upstream.trust` that can't make any server trusted: a warning where they are named, not an error.
@Suite struct UselessAnchorTests {
    private static let now = CertificateTemplate.now

    private let root: HeldCertificate
    private let intermediate: HeldCertificate
    private let expired: HeldCertificate

    init() throws {
        root = try .root("Corp Root")
        intermediate = try root.issue(.intermediate("Corp Issuing CA"))
        expired = try .selfSigned(.root("Old Root").with { $0.notAfter = Self.now - 1 })
    }

    private func problems(_ trust: String, at time: Int64 = now, _ files: [String: String]) throws -> [String] {
        let bed = try ConfigurationBed(
            files.merging(["pinproxy.yaml": "upstream:\n  trust: \(trust)\npins: null\n"]) { $1 })
        let snapshot = try Snapshot.load(bed.path("pinproxy.yaml"), stateDirectory: bed.directory, at: time)
        return snapshot.warnings.map { $0.description.replacing(bed.directory + "/", with: "") }
    }

    @Test func rootsThatCanBeUsedAreNotSpokenOf() throws {
        let alone = try HeldCertificate.selfSigned(.leaf("api.test")).pem
        #expect(try problems("[root.pem, alone.pem]", ["root.pem": root.pem, "alone.pem": alone]) == [])
        // An intermediate beside its root completes the chains of servers that don't send it.
        #expect(try problems("[a.pem, b.pem]", ["a.pem": intermediate.pem, "b.pem": root.pem]) == [])
        #expect(try problems("both.pem", ["both.pem": intermediate.pem + root.pem]) == [])
    }

    /// It ends chains, as its owner wants.
    @Test func anIntermediateAlone() throws {
        #expect(
            try problems(
                "[root.pem, issuing.pem]", ["root.pem": HeldCertificate.root().pem, "issuing.pem": intermediate.pem])
                == [])
        let expired = try root.issue(.intermediate("Old CA").with { $0.notAfter = Self.now - 1 })
        #expect(
            try problems("issuing.pem", ["issuing.pem": expired.pem]) == [
                """
                pinproxy.yaml:2:10: warning: trust: no server can be trusted by this file: certificate expired \
                2029-12-31 (CN=Old CA)
                """
            ])
    }

    /// At the given time; its last second is valid.
    @Test func aRootThatHasExpired() throws {
        let files = ["old.pem": expired.pem]
        #expect(
            try problems("old.pem", files) == [
                "pinproxy.yaml:2:10: warning: trust: no server can be trusted by this file: certificate expired "
                    + "2029-12-31 (CN=Old Root)"
            ])
        #expect(try problems("old.pem", at: Self.now - 1, files) == [])
    }

    @Test func aFileWithGoodAndBadOnes() throws {
        let weak = try HeldCertificate.selfSigned(.root("Weak Root").with { $0.key = .rsa(1024) })
        let early = CertificateTemplate.intermediate("Strange CA").with { $0.notBefore = Self.now + 1 }
        let stranger = try HeldCertificate.root("Stranger").issue(early)
        let bundle = [
            expired, root, weak, stranger,
            try HeldCertificate.root("Second").issue(early.with { $0.commonName = "Another" }),
        ]
        let found = try problems("bundle.pem", ["bundle.pem": bundle.map(\.pem).joined()])
        #expect(found.count == 1)
        let text = try #require(found.first)
        #expect(
            text.hasPrefix(
                "pinproxy.yaml:2:10: warning: trust: no server can be trusted by 4 of the 5 certificates in this file: "
            ))
        for words in ["(CN=Old Root)", "RSA 1024", "(CN=Strange CA)", "; and 1 more"] {
            #expect(text.contains(words), "\(text)")
        }
    }

    @Test func theProxysOwnAuthority() throws {
        let found = try problems(
            "[own.pem, root.pem]",
            ["own.pem": intermediate.pem, "authority.pem": intermediate.pem, "root.pem": root.pem])
        #expect(
            found == [
                "pinproxy.yaml:2:11: warning: trust: no server can be trusted by this file: CN=Corp Issuing CA is the "
                    + "proxy's own authority, which vouches for no server"
            ])
    }

    /// Anchors are never silently missing: a file without any is an error, with its place.
    @Test func anEmptyFile() throws {
        let bed = try ConfigurationBed([
            "pinproxy.yaml": "upstream:\n  trust: empty.pem\npins: null\n", "empty.pem": "",
        ])
        #expect(bed.problems().map { $0.hasPrefix("pinproxy.yaml:2:10: error: trust: empty.pem: ") } == [true])
    }
}
