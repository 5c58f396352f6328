import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

@Suite struct CertificateTests {
    static let held = Result {
        try HeldCertificate.root("Fields Root").issue(
            .leaf("api.test", "*.api.test", ipAddresses: ["192.0.2.7", "2001:db8::1"]).with {
                $0.subject = [("2.5.4.6", "DE"), ("2.5.4.10", "Ex, ample\n"), ("2.5.4.3", "ä.test")]
                $0.serial = [0x0A, 0xBC]
            })
    }

    /// Each of these would end a comment in YAML, or be displayed as something else.
    @Test(arguments: [
        ("a\u{2028}b", #"a\E2\80\A8b"#), ("a\u{2029}b", #"a\E2\80\A9b"#), ("a\u{85}b", #"a\C2\85b"#),
        ("a\u{202E}b", #"a\E2\80\AEb"#), ("a\u{1B}[2J", #"a\1B[2J"#), ("a\u{E000}b", #"a\EE\80\80b"#),
        ("Zürich 東京", "Zürich 東京"),
    ])
    func aSubjectStaysOnItsLine(_ text: String, _ shown: String) throws {
        let held = try HeldCertificate.selfSigned(.leaf("x.test").with { $0.subject = [("2.5.4.10", text)] })
        let certificate = try Certificate(der: held.der)
        #expect(certificate.subject == "O=" + shown)
        #expect(certificate.issuer == certificate.subject)
    }

    @Test func fields() throws {
        let held = try Self.held.get()
        let certificate = try Certificate(der: held.der)
        #expect(certificate.der == held.der)
        #expect(certificate.subject == #"CN=ä.test,O=Ex\, ample\0A,C=DE"#)
        #expect(certificate.issuer == "CN=Fields Root")
        #expect(certificate.serialNumber == "0abc")
        #expect(certificate.notBefore == CertificateTemplate.now - 30 * CertificateTemplate.day)
        #expect(certificate.notAfter == CertificateTemplate.now + 30 * CertificateTemplate.day)
        #expect(certificate.dnsNames == ["api.test", "*.api.test"])
        #expect(certificate.ipAddresses == ["192.0.2.7", "2001:db8::1"])
        #expect(certificate.keyDescription == "EC P-256")
        #expect(!certificate.isAuthority)
        #expect(!certificate.isSelfIssued)
        #expect(certificate.subjectKeyIdentifier?.count == 20)
        #expect(certificate.publicKeyDER == held.key.publicKeyDER)
        #expect(try certificate.publicKey.der == held.key.publicKeyDER)
        let root = try Certificate(der: held.issuers[0].der)
        #expect(root.isAuthority)
        #expect(root.isSelfIssued)
        #expect(root != certificate)
        #expect(try Set([root, certificate, Certificate(der: held.der)]).count == 2)
    }

    @Test(arguments: [
        (TestKey.Kind.p384, "EC P-384"), (.rsa(1024), "RSA 1024"), (.rsa(2048), "RSA 2048"), (.ed25519, "Ed25519"),
    ])
    func keyDescriptions(_ kind: TestKey.Kind, _ text: String) throws {
        let held = try HeldCertificate.selfSigned(.leaf("key.test").with { $0.key = kind })
        #expect(try Certificate(der: held.der).keyDescription == text)
    }

    @Test(arguments: [Int64(0), -1, 946_684_799, 951_782_400, 2_524_607_999, 2_524_608_000, 4_102_444_800])
    func dates(_ instant: Int64) throws {
        let held = try HeldCertificate.selfSigned(
            .leaf("date.test").with {
                $0.notBefore = instant
                $0.notAfter = instant
            })
        let certificate = try Certificate(der: held.der)
        #expect(certificate.notBefore == instant)
        #expect(certificate.notAfter == instant)
    }

    @Test func namesThatAreNoText() throws {
        let names = DERWriter.sequence(
            DERWriter.value(0x82, Array("a.test".utf8) + [0] + Array("b\u{1B}".utf8)),
            DERWriter.value(0x87, [1, 2, 3]),
            DERWriter.value(0x81, Array("mail@a.test".utf8)))
        let held = try HeldCertificate.selfSigned(.leaf("x.test").with { $0.subjectAltName = names })
        let certificate = try Certificate(der: held.der)
        #expect(certificate.dnsNames == [#"a.test\x00b\x1b"#])
        #expect(certificate.ipAddresses.isEmpty)
    }

    @Test func everyPrefixIsRefused() throws {
        let der = try Self.held.get().der
        for count in 0..<der.count {
            #expect(throws: CertificateError.self) { try Certificate(der: Array(der[..<count])) }
        }
        #expect(throws: CertificateError.self) { try Certificate(der: der + [0]) }
    }

    @Test func pemFiles() throws {
        let held = try Self.held.get()
        let leaf = try Certificate(der: held.der)
        let root = try Certificate(der: held.issuers[0].der)
        let text = "a comment\r\n" + held.pem.replacing("\n", with: "\r\n") + held.keyPEM + "\n" + held.issuers[0].pem
        #expect(try Certificate.all(inPEM: Array(text.utf8)) == [leaf, root])
        #expect(try Certificate(derOrPEM: Array(text.utf8)) == leaf)
        #expect(try Certificate(derOrPEM: held.der) == leaf)
        #expect(try Certificate.all(inPEM: Array(leaf.pem.utf8)) == [leaf])
        #expect(leaf.pem == held.pem)
    }

    @Test func brokenPEMSaysWhere() throws {
        let held = try Self.held.get()
        func error(_ text: String) -> String? {
            do {
                _ = try Certificate.all(inPEM: Array(text.utf8))
                return nil
            } catch { return error.description }
        }
        #expect(error("") == "it contains no certificate")
        #expect(error(held.keyPEM) == "it contains no certificate")
        #expect(error("\n" + held.pem.dropLast(30)) == "line 2: CERTIFICATE begins here and has no END line")
        let lines = held.pem.split(separator: "\n").count
        let twice = held.pem + held.pem.replacing("MII", with: "M!I", maxReplacements: 1)
        #expect(error(twice) == "line \(lines + 1): the CERTIFICATE that begins here is not base64")
        let wrong = held.pem + HeldCertificate.pem(Array(held.der.dropLast(4)), label: "CERTIFICATE")
        #expect(error(wrong)?.hasPrefix("line \(lines + 1): certificate 2 in it is broken: ") == true)
    }

    @Test func serverNames() {
        #expect(ServerName(host: "API.Example.TEST.") == .dns("api.example.test"))
        #expect(ServerName(host: "192.0.2.1") == .ip("192.0.2.1"))
        #expect(ServerName(host: "2001:db8::1") == .ip("2001:db8::1"))
        #expect(ServerName(host: "1.2.3") == .dns("1.2.3"))
    }
}
