import Glibc
import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

@Suite struct HandshakeTests {
    let peers: Peers

    init() throws { peers = try Peers.shared.get() }

    @Test func bestParameters() throws {
        let pair = try ConnectionPair(
            client: peers.clientContext, server: peers.serverContext, identity: peers.identity)
        try pair.connect()
        #expect(pair.client.version == .tls13)
        #expect(pair.server.version == .tls13)
        #expect(pair.client.cipherName == "TLS_AES_128_GCM_SHA256")
        let group = try OpenSSLCommand.knowsPostQuantumGroups ? "X25519MLKEM768" : "x25519"
        #expect(pair.client.groupName == group)
        #expect(pair.server.groupName == group)
        #expect(pair.client.alpn == "http/1.1")
        #expect(pair.server.alpn == "http/1.1")
        #expect(pair.server.clientServerName == "api.test")
        #expect(pair.client.clientServerName == nil)
        #expect(!pair.client.isResumed && !pair.server.isResumed)
        #expect(pair.server.peerChain == nil)
        try pair.exchange()
    }

    @Test func theChainIsHandedOverAsSent() throws {
        let foreign = try HeldCertificate.root("Foreign")
        let sent = try (peers.leaf.chain + [foreign]).map { try Certificate(der: $0.der) }
        let identity = try Identity(chain: sent, key: PrivateKey(pem: Array(peers.leaf.keyPEM.utf8)))
        var seen: [PresentedChain] = []
        let pair = try ConnectionPair(
            client: peers.clientContext, server: peers.serverContext, identity: identity,
            verify: {
                seen.append($0)
                return .accept
            })
        try pair.connect()
        #expect(seen.map(\.certificates) == [sent])
        #expect(pair.client.peerChain?.certificates == sent)
    }

    @Test func aVerdictByTrustAnchors() throws {
        let anchors = TrustAnchors([try Certificate(der: peers.root.der)])
        for (name, accepts) in [("api.test", true), ("other.test", false)] {
            var failure: VerificationFailure?
            let pair = try ConnectionPair(
                client: peers.clientContext, server: peers.serverContext, identity: peers.identity,
                verify: {
                    let options = VerificationOptions(name: .dns(name), time: CertificateTemplate.now)
                    switch anchors.verify($0, options: options) {
                    case .success: return .accept
                    case .failure(let reason):
                        failure = reason
                        return .reject(x509Code: reason.x509Code)
                    }
                })
            let (client, _) = pair.handshake()
            #expect((client.kind == nil) == accepts)
            #expect((failure == nil) == accepts)
        }
    }

    @Test(arguments: [
        (VerificationFailure.Reason.expired, CInt(10), UInt8(45)), (.unknownIssuer, 20, 48), (.nameMismatch, 62, 42),
    ])
    func rejectionTellsThePeerWhy(_ reason: VerificationFailure.Reason, _ code: CInt, _ alert: UInt8) throws {
        #expect(VerificationFailure.Reason(code) == reason)
        for version in [TLSVersion.tls12, .tls13] {
            let pair = try ConnectionPair(
                client: peers.clientContext, server: Peers.server(version), identity: peers.identity,
                verify: { _ in .reject(x509Code: code) })
            let (client, server) = pair.handshake()
            #expect(client.kind == .certificateRejected)
            #expect(client.message == "the peer's certificate was refused")
            #expect(server.kind == .alertReceived(alert))
            #expect(server.message?.contains("TLS alert \(alert) (") == true)
            // Nothing is left to be sent.
            try pair.client.shutdown().get()
        }
    }

    @Test func aRejectionWithoutACodeIsARejection() throws {
        let pair = try ConnectionPair(
            client: peers.clientContext, server: peers.serverContext, identity: peers.identity,
            verify: { _ in .reject(x509Code: 0) })
        #expect(pair.handshake().client.kind == .certificateRejected)
    }

    @Test func tls12() throws {
        let pair = try ConnectionPair(
            client: peers.clientContext, server: Peers.server(.tls12), identity: peers.identity)
        try pair.connect()
        #expect(pair.client.version == .tls12)
        #expect(pair.client.cipherName == "ECDHE-ECDSA-AES128-GCM-SHA256")
        #expect(pair.server.clientServerName == "api.test")
        try pair.exchange()
    }

    @Test(arguments: [TestKey.Kind.p384, .rsa(2048), .ed25519])
    func keysOfAllKinds(_ kind: TestKey.Kind) throws {
        let leaf = try peers.root.issue(.leaf("api.test").with { $0.key = kind })
        for context in [peers.serverContext, try Peers.server(.tls12)] {
            let pair = try ConnectionPair(
                client: peers.clientContext, server: context, identity: Peers.identity(leaf))
            try pair.connect()
        }
    }

    @Test func serverNameIsNotSentForAddresses() throws {
        let pair = try ConnectionPair(
            client: peers.clientContext, server: peers.serverContext, identity: peers.identity,
            serverName: .ip("192.0.2.1"))
        try pair.connect()
        #expect(pair.server.clientServerName == nil)
    }

    @Test func noSharedVersion() throws {
        var options = TLSClientContext.Options()
        options.versions = .tls13 ... .tls13
        let pair = try ConnectionPair(
            client: TLSClientContext(options: options), server: Peers.server(.tls12), identity: peers.identity)
        let (client, server) = pair.handshake()
        #expect(client.kind == .alertReceived(70))
        #expect(client.message?.contains("supports no TLS version that is accepted here") == true)
        #expect(server.kind == .noSharedVersion)
    }

    @Test func bytesThatAreNoTLS() throws {
        for text in ["GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
            let pair = try ConnectionPair(
                client: peers.clientContext, server: peers.serverContext, identity: peers.identity)
            let bytes = Array(text.utf8)
            #expect(write(pair.sockets.client, bytes, bytes.count) == bytes.count)
            #expect(write(pair.sockets.server, bytes, bytes.count) == bytes.count)
            let (client, server) = pair.handshake()
            #expect(client.kind == .notTLS)
            #expect(server.kind == .notTLS)
            #expect(server.message?.hasPrefix("the peer does not speak TLS on this port") == true)
        }
    }

    @Test func peerVanishesInTheHandshake() throws {
        let pair = try ConnectionPair(
            client: peers.clientContext, server: peers.serverContext, identity: peers.identity)
        #expect(pair.client.handshake().isPending)
        pair.sockets.closeServer()
        let failed = pair.client.handshake()
        // With unread data in a socket pair the kernel reports ECONNRESET.
        #expect(failed.kind == .unexpectedEOF || failed.kind == .system(ECONNRESET))
    }

    @Test func identityOfTheContext() throws {
        var options = TLSServerContext.Options()
        options.identity = peers.identity
        let pair = try ConnectionPair(client: peers.clientContext, server: TLSServerContext(options: options))
        try pair.connect()
        #expect(pair.client.peerChain?.leaf == peers.identity.leaf)
        #expect(throws: TLSError.self) {
            try ConnectionPair(client: peers.clientContext, server: peers.serverContext)
        }
    }

    @Test func weakIdentitiesAreNotShown() throws {
        let weak = try Peers.identity(peers.root.issue(.leaf("api.test").with { $0.key = .rsa(1024) }))
        #expect(throws: TLSError.self) {
            try ConnectionPair(client: peers.clientContext, server: peers.serverContext, identity: weak)
        }
    }
}
