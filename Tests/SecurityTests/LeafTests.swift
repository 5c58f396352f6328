import Foundation
import PinproxyTLS
import Testing

@testable import PinproxySecurity

@Suite struct LeafTests {
    static let now = LocalAuthorityTests.now
    static let day: Int64 = 86_400

    let authority: LocalAuthority

    init() throws {
        authority = try LocalAuthority.issue(for: LocalAuthority.generateKey(), machine: "test", at: Self.now)
    }

    private func leaf(_ host: String, at time: Int64 = now, lifetime: Int64 = 30 * day) throws -> Certificate {
        try authority.mint(for: ServerName(host: host), at: time, lifetime: lifetime).leaf
    }

    private func verify(
        _ leaf: Certificate, _ host: String, at time: Int64 = now
    ) -> Result<VerifiedChain, VerificationFailure> {
        TrustAnchors([authority.certificate]).verify(
            PresentedChain(leaf: leaf), options: VerificationOptions(name: ServerName(host: host), time: time))
    }

    static let longName = Array(repeating: "abcdefghij", count: 20).joined(separator: ".") + ".test"

    @Test(arguments: ["api.test", "127.0.0.1", "::1", "2001:db8::1", "a_b.test", "localhost", longName])
    func aLeafIsForItsHostAndNoOther(_ host: String) throws {
        let leaf = try leaf(host)
        #expect(throws: Never.self) { try verify(leaf, host).get() }
        for other in ["other.test", "sub." + host, "192.0.2.9"] {
            #expect(throws: VerificationFailure.self) { try verify(leaf, other).get() }
        }
        #expect(leaf.dnsNames + leaf.ipAddresses == [host])
        #expect(leaf.subject == (host.utf8.count <= 64 ? "CN=\(host)" : ""))
        #expect(!leaf.isAuthority)
    }

    @Test func leavesHaveOneKeyThatIsNotTheAuthoritys() throws {
        let first = try authority.mint(for: .dns("a.test"), at: Self.now, lifetime: Self.day)
        let second = try authority.mint(for: .dns("b.test"), at: Self.now, lifetime: Self.day)
        #expect(first.leaf.spkiSHA256 == second.leaf.spkiSHA256)
        #expect(first.leaf.spkiSHA256 != authority.certificate.spkiSHA256)
        #expect(first.chain.count == 1)
        // What was assembled from fields equals what a parser reads.
        let parsed = try Certificate(der: first.leaf.der)
        #expect(parsed.spkiSHA256 == first.leaf.spkiSHA256)
        #expect(first.key.matches(parsed))
    }

    @Test func serialNumbersAreChance() throws {
        let serials = try (0..<200).map { try leaf("h\($0).test").serialNumber }
        #expect(Set(serials).count == 200)
        #expect(serials.allSatisfy { $0.count == 32 && ("4"..."7").contains($0.prefix(1)) })
        #expect(Set(serials.map { $0.suffix(8) }).count > 190)
    }

    @Test func theLifetimeIsBounded() throws {
        let month = try leaf("api.test")
        #expect(month.notBefore == Self.now - LocalAuthority.backdating)
        #expect(month.notAfter == Self.now + 30 * Self.day)
        let year = try leaf("api.test", lifetime: 365 * Self.day)
        #expect(year.notAfter - year.notBefore + 1 == 90 * Self.day)
        let last = authority.certificate.notAfter
        let late = try leaf("api.test", at: last - 3600)
        #expect(late.notAfter == last)
        let early = try leaf("api.test", at: Self.now - Self.day + 60)
        #expect(early.notBefore == authority.certificate.notBefore)
        // The authority is still valid in its last second (RFC 5280 section 4.1.2.5).
        #expect(try leaf("api.test", at: last).notAfter == last)
        #expect(throws: AuthorityError.self) { try leaf("api.test", at: last + 1) }
    }

    @Test(arguments: ["*.test", "", ".", ".test", "a b.test", "a\0.test", "bücher.test", "a/b"])
    func noLeafForWhatIsNoHost(_ host: String) {
        #expect(throws: AuthorityError.self) {
            try authority.mint(for: .dns(host), at: Self.now, lifetime: Self.day)
        }
        #expect(throws: AuthorityError.self) {
            try authority.mint(for: .ip(host), at: Self.now, lifetime: Self.day)
        }
    }

    // MARK: Read by other programs

    /// Runs a program without the shell's CA variables, and returns its output and exit code.
    private func run(_ arguments: String...) throws -> (output: String, code: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        process.environment = ["PATH": "/usr/local/bin:/usr/bin:/bin"]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return (String(decoding: data, as: UTF8.self), process.terminationStatus)
    }

    @Test(arguments: ["api.test", "127.0.0.1", "::1", longName])
    func opensslVerifiesStrictly(_ host: String) throws {
        let directory = try TemporaryDirectory()
        let root = try directory.write(authority.certificate.pem, "root.pem")
        let leaf = try directory.write(try leaf(host).pem, "leaf.pem")
        let kind = ServerName(host: host) == .dns(host) ? "-verify_hostname" : "-verify_ip"
        let (output, code) = try run(
            "openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-auth_level", "2", "-check_ss_sig",
            "-CAfile", root, "-no-CApath", kind, host, leaf)
        #expect(code == 0, "\(output)")
        let (text, _) = try run("openssl", "x509", "-in", leaf, "-noout", "-text")
        #expect(text.contains("X509v3 Subject Alternative Name: " + (host.utf8.count > 64 ? "critical" : "\n")))
        #expect(text.contains("TLS Web Server Authentication"))
        #expect(text.contains("X509v3 Key Usage: critical\n                Digital Signature\n"))
    }

    /// The identifiers as another parser reads them: the leaf's authority identifier is the authority's, byte for byte.
    @Test func theAuthorityKeyIdentifierIsTheAuthoritysSubjectKeyIdentifier() throws {
        let directory = try TemporaryDirectory()
        func identifier(_ certificate: Certificate, _ name: String) throws -> String {
            let file = try directory.write(certificate.pem, "c.pem")
            let lines = try run("openssl", "x509", "-in", file, "-noout", "-ext", name).output.split(separator: "\n")
            return lines.last?.trimmingCharacters(in: .whitespaces) ?? ""
        }
        let own = try identifier(authority.certificate, "subjectKeyIdentifier")
        #expect(own.count == 59)
        #expect(try identifier(leaf("api.test"), "authorityKeyIdentifier") == own)
        #expect(try identifier(authority.certificate, "authorityKeyIdentifier") == own)
        #expect(try identifier(leaf("api.test"), "subjectKeyIdentifier") != own)
    }

    /// A handshake in memory, with the flags that are Python's default since 3.13.
    @Test(arguments: ["api.test", "127.0.0.1", longName])
    func pythonVerifiesStrictly(_ host: String) throws {
        let directory = try TemporaryDirectory()
        let root = try directory.write(authority.certificate.pem, "root.pem")
        let identity = try authority.mint(for: ServerName(host: host), at: Self.now, lifetime: 30 * Self.day)
        let chain = try directory.write(identity.chain.map(\.pem).joined(), "chain.pem")
        let key = try directory.write(identity.key.pem, "chain.key", mode: 0o600)
        let script = try directory.write(
            """
            import ssl, sys
            root, chain, key, host = sys.argv[1:]
            def pair(name):
                c = ssl.create_default_context(cafile=root)
                c.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
                s = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                s.load_cert_chain(chain, key)
                a, b, x, y = (ssl.MemoryBIO() for _ in range(4))
                return c.wrap_bio(a, b, server_hostname=name), s.wrap_bio(b, a, server_side=True)
            def shake(name):
                ends = list(pair(name))
                for _ in range(10):
                    for end in list(ends):
                        try:
                            end.do_handshake()
                            ends.remove(end)
                        except ssl.SSLWantReadError:
                            pass
                assert not ends
            shake(host)
            try:
                shake("wrong.test")
            except ssl.SSLCertVerificationError:
                print("verified", end="")
            """, "handshake.py")
        let (output, code) = try run("python3", script, root, chain, key, host)
        #expect(output == "verified" && code == 0, "\(output)")
    }
}
