import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// Keys and certificates from the file formats in use.
@Suite struct IdentityFileTests {
    let root: HeldCertificate
    let leaf: HeldCertificate

    init() throws {
        root = try HeldCertificate.root()
        leaf = try root.issue(.intermediate("Upper", pathLength: nil)).issue(.intermediate("Lower")).issue(
            .leaf("client.test"))
    }

    // MARK: PKCS#12

    @Test(arguments: ["secret", "", "pä€ss", nil])
    func pkcs12(_ password: String?) throws {
        let identity = try Identity(pkcs12: leaf.pkcs12(password: password), password: password)
        #expect(identity.chain.map(\.der) == leaf.chainDER)
        #expect(identity.key.publicKey.der == leaf.key.publicKeyDER)
    }

    @Test func theChainIsPutInOrder() throws {
        let stranger = try HeldCertificate.root("Stranger")
        for others in [[root, leaf.issuers[1], leaf.issuers[0]], [stranger, leaf.issuers[1], root, leaf.issuers[0]]] {
            let identity = try Identity(pkcs12: leaf.pkcs12(password: "x", others: others), password: "x")
            #expect(identity.chain.map(\.der) == ([leaf] + leaf.issuers).map(\.der))
        }
        let alone = try Identity(pkcs12: leaf.pkcs12(password: "x", others: [root]), password: "x")
        #expect(alone.chain.map(\.der) == [leaf.der])
        let own = try Identity(pkcs12: root.pkcs12(password: "x", others: [root]), password: "x")
        #expect(own.chain.map(\.der).first == root.der)
    }

    @Test func pkcs12ThatCantBeUsed() throws {
        func error(_ bytes: [UInt8], _ password: String? = "secret") -> IdentityError? {
            #expect(throws: IdentityError.self) { try Identity(pkcs12: bytes, password: password) }
        }
        let whole = try leaf.pkcs12(password: "secret")
        #expect(error(whole, "other") == .wrongPassword)
        #expect(error(whole, nil) == .wrongPassword)
        #expect(error(whole, "") == .wrongPassword)
        #expect(try error(leaf.pkcs12(password: "secret", withKey: false)) == .noKey)
        #expect(try error(leaf.pkcs12(password: "secret", withCertificate: false)) == .noCertificate)
        #expect(error(whole + [0]) == .malformed("there are bytes after it"))
        for bytes in [[], Array("nonsense".utf8), leaf.der, Array(leaf.pem.utf8)] {
            guard case .malformed? = error(bytes) else {
                Issue.record("\(bytes.count) bytes")
                continue
            }
        }
        for count in stride(from: 0, to: whole.count, by: 7) { #expect(error(Array(whole[..<count])) != nil) }
    }

    /// The encryption of OpenSSL 1.1 and Windows.
    @Test func oldEncryption() throws {
        let directory = try TemporaryDirectory()
        let input = try directory.file("all.pem", leaf.keyPEM + leaf.pem)
        let bytes = try OpenSSLCommand.run(
            ["pkcs12", "-export", "-legacy", "-in", input, "-passout", "pass:secret"], input: [])
        let error = #expect(throws: IdentityError.self) { try Identity(pkcs12: bytes, password: "secret") }
        #expect(error == .legacyEncryption)
        #expect(error?.description.contains("openssl pkcs12 -legacy") == true)
    }

    // MARK: Private keys

    @Test(arguments: [TestKey.Kind.p256, .p384, .rsa(2048), .ed25519])
    func privateKeys(_ kind: TestKey.Kind) throws {
        let key = try TestKey.shared(kind)
        let der = try OpenSSLCommand.run(["pkey", "-outform", "DER"], input: Array(key.privateKeyPEM.utf8))
        var forms = [Array(key.privateKeyPEM.utf8), der, key.privateKeyDER]
        if kind != .ed25519 {
            forms.append(try OpenSSLCommand.run(["pkey", "-traditional"], input: Array(key.privateKeyPEM.utf8)))
        }
        for form in forms { #expect(try PrivateKey(derOrPEM: form).publicKey.der == key.publicKeyDER) }
        for count in 0..<der.count {
            #expect(throws: KeyError.self) { try PrivateKey(derOrPEM: Array(der[..<count])) }
        }
        #expect(throws: KeyError.malformed("there are bytes after it")) { try PrivateKey(derOrPEM: der + [0]) }
        #expect(throws: KeyError.encrypted) { try PrivateKey(derOrPEM: key.encryptedDER(password: "x")) }
        #expect(throws: KeyError.self) { try PrivateKey(derOrPEM: key.publicKeyDER) }
    }

    // MARK: Requests

    @Test(arguments: [TestKey.Kind.p256, .rsa(2048), .ed25519])
    func requests(_ kind: TestKey.Kind) throws {
        let held = try HeldCertificate.selfSigned(
            .leaf("api.test").with {
                $0.key = kind
                $0.subject = [("2.5.4.10", "Example"), ("2.5.4.3", "api.test")]
            })
        let der = try held.certificateRequest()
        for bytes in [der, Array(HeldCertificate.pem(der, label: "CERTIFICATE REQUEST").utf8)] {
            let request = try CertificateRequest(derOrPEM: bytes)
            #expect(request.subject == "CN=api.test,O=Example")
            #expect(request.publicKey.der == held.key.publicKeyDER)
        }
        #expect(throws: CertificateRequestError.badSignature) {
            try CertificateRequest(derOrPEM: held.certificateRequest(breaksSignature: true))
        }
        for count in 0..<der.count {
            #expect(throws: CertificateRequestError.self) { try CertificateRequest(derOrPEM: Array(der[..<count])) }
        }
        #expect(throws: CertificateRequestError.malformed("there are bytes after it")) {
            try CertificateRequest(derOrPEM: der + [0])
        }
        #expect(throws: CertificateRequestError.pem(.noBlock(wanted: "certificate request"))) {
            try CertificateRequest(derOrPEM: Array(held.pem.utf8))
        }
    }

    // MARK: Mutual TLS

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func theClientsChainIsShown(_ version: TLSVersion) throws {
        let peers = try Peers.shared.get()
        for identity in try [Peers.identity(leaf), Identity(pkcs12: leaf.pkcs12(password: "x"), password: "x")] {
            let (server, asked) = (try Peers.server(version), ClientCertificates())
            asked.install(on: server.handle.pointer)
            var options = TLSClientContext.Options()
            options.clientIdentity = identity
            let pair = try ConnectionPair(
                client: TLSClientContext(options: options), server: server, identity: peers.identity)
            try pair.connect()
            try pair.exchange()
            #expect(asked.shown == leaf.chainDER)
        }
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func aClientWithoutOneIsToldSo(_ version: TLSVersion) throws {
        let peers = try Peers.shared.get()
        let (server, asked) = (try Peers.server(version), ClientCertificates())
        asked.install(on: server.handle.pointer)
        let pair = try ConnectionPair(client: peers.clientContext, server: server, identity: peers.identity)
        let (client, _) = pair.handshake()
        // In TLS 1.3 the client finishes before the server has checked.
        let failed = version == .tls13 ? pair.client.receive().kind : client.kind
        #expect(failed == .alertReceived(version == .tls13 ? 116 : 40))
        #expect(asked.shown.isEmpty)
    }
}
