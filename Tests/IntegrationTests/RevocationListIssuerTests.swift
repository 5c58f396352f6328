import Foundation
import PinproxyTestAuthority
import Testing

/// Revocation lists that name a certificate other than the chain's, and lists signed by another key.
@Suite(.timeLimit(.minutes(5)))
struct RevocationListIssuerTests {
    private func pinproxy(_ bed: TestBed, _ arguments: String...) async throws -> Run {
        try await bed.run(
            [ProxyProcess.executable] + arguments + ["--config", bed.path("proxy/pinproxy.yaml")],
            environment: ProxyProcess.environment(in: bed))
    }

    /// `openssl ca`, with extensions as EasyRSA writes them: issuer and serial number of the authority's certificate.
    private func list(
        _ bed: TestBed, by authority: HeldCertificate, revoking leaf: HeldCertificate?
    ) async throws -> String {
        try bed.file("ca/authority.pem", authority.pem)
        try bed.file("ca/authority.key", authority.keyPEM)
        try bed.file("ca/index.txt", "")
        try bed.file("ca/number", "01\n")
        let settings = try bed.file(
            "ca/ca.cnf",
            """
            [ca]
            default_ca = own
            [own]
            database = \(bed.path("ca/index.txt"))
            crlnumber = \(bed.path("ca/number"))
            certificate = \(bed.path("ca/authority.pem"))
            private_key = \(bed.path("ca/authority.key"))
            default_md = sha256
            default_crl_days = 30
            crl_extensions = list
            [list]
            authorityKeyIdentifier = keyid:always, issuer:always
            """)
        if let leaf {
            let revoked = try bed.file("ca/revoked.pem", leaf.pem)
            let run = try await bed.run(["openssl", "ca", "-config", settings, "-revoke", revoked])
            #expect(run.succeeded, "\(run)")
        }
        let path = bed.path("proxy/corp.crl")
        try bed.file("proxy/corp.crl", "")
        let run = try await bed.run(["openssl", "ca", "-config", settings, "-gencrl", "-out", path])
        #expect(run.succeeded, "\(run)")
        let text = try await bed.run(["openssl", "crl", "-in", path, "-noout", "-text"])
        #expect(text.output.contains("DirName:"), "\(text)")
        return path
    }

    /// The list names the certificate from before the renewal. Key and name are the same.
    @Test func aRenewedIssuer() async throws {
        try await withTestBed { bed in
            let key = try TestKey()
            let template = CertificateTemplate.root("Corp Root").validToday.with { $0.keyPair = key }
            let (old, new) = (try HeldCertificate.selfSigned(template), try HeldCertificate.selfSigned(template))
            let (good, bad) = (
                try new.issue(TestRoots.template(["good.test"])), try new.issue(TestRoots.template(["bad.test"]))
            )
            let goodOrigin = try await PythonPeer.origin(in: bed, chain: ServedChain(good))
            let badOrigin = try await PythonPeer.origin(in: bed, chain: ServedChain(bad))
            _ = try await list(bed, by: old, revoking: bad)
            let proxy = try await ProxyProcess(
                in: bed, pins: "defaults:\n  crl_files: [corp.crl]\nhosts: []\n", trust: bed.file("root.pem", new.pem),
                hosts: ["good.test": "127.0.0.1", "bad.test": "127.0.0.1"])
            let answer = try await proxy.connect(to: "bad.test:\(badOrigin.port)")
            Expected.refused(502, "certificate was revoked").check(answer, host: "bad.test")
            #expect(try await proxy.connect(to: "good.test:\(goodOrigin.port)").status == 200)
            // The list is used.
            #expect(try await pinproxy(bed, "check").errors == "")
            let explain = try await pinproxy(bed, "explain", "good.test:\(goodOrigin.port)", "--verbose")
            #expect(explain.output.contains("corp.crl: list of CN=Corp Root, valid until 20"), "\(explain)")
        }
    }

    /// A list by an authority that only shares the name gives no protection, and a message says so.
    @Test func aNamesake() async throws {
        try await withTestBed { bed in
            let own = try HeldCertificate.selfSigned(.root("Corp Root").validToday)
            let other = try HeldCertificate.selfSigned(.root("Corp Root").validToday)
            let leaf = try own.issue(TestRoots.template(["listed.test"]))
            let origin = try await PythonPeer.origin(in: bed, chain: ServedChain(leaf))
            let file = try await list(bed, by: other, revoking: nil)
            let host = "listed.test:\(origin.port)"
            let proxy = try await ProxyProcess(
                in: bed, pins: "hosts:\n  - match: \(host)\n    crl_files: [corp.crl]\n",
                trust: bed.file("root.pem", own.pem),
                hosts: ["listed.test": "127.0.0.1"])
            #expect(try await proxy.connect(to: host).status == 200)
            let check = try await pinproxy(bed, "check")
            let words = "the CRL of CN=Corp Root (\(file)) is not signed by the key of CN=Corp Root"
            #expect(check.succeeded && check.errors.contains("pins.yaml:2:12: warning: \(host): \(words)"), "\(check)")
            let offline = try await pinproxy(bed, "lint", "--offline")
            #expect(offline.output.contains(words) && offline.output.contains("[no-revocation-list]"), "\(offline)")
            let lint = try await pinproxy(bed, "lint")
            #expect(
                lint.output.contains("(\(file)) is signed by another key than the issuer in the chain of \(host)"),
                "\(lint)")
            let explain = try await pinproxy(bed, "explain", host)
            #expect(
                explain.output.contains("\(file): this list of CN=Corp Root is not signed by the key of CN=Corp Root"),
                "\(explain)")
        }
    }
}
