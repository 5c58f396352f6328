import Glibc
import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// A server and a client over a socket pair, driven in turn by one thread.
struct ConnectionPair {
    let client: Endpoint
    let server: Endpoint
    let sockets: SocketPair

    /// - Parameter verify: the client's verdict on the server's certificates; nil accepts.
    init(
        client clientContext: TLSClientContext, server serverContext: TLSServerContext, identity: Identity? = nil,
        ticketContext: [UInt8] = Array("test".utf8), serverName: ServerName = .dns("api.test"),
        session: TLSSession? = nil, verify: ((PresentedChain) -> PeerVerdict)? = nil,
        confirm: ((PeerEvidence) -> PeerVerdict)? = nil, onSession: ((TLSSession) -> Void)? = nil
    ) throws {
        sockets = try SocketPair()
        client = Endpoint(
            try TLSConnection(
                client: clientContext, descriptor: sockets.client, serverName: serverName, session: session,
                verify: verify ?? { _ in .accept }, confirm: confirm, onSession: onSession))
        server = Endpoint(
            try TLSConnection(
                server: serverContext, descriptor: sockets.server, identity: identity, ticketContext: ticketContext))
    }

    /// Both sides' results once neither makes progress.
    func handshake() -> (client: Outcome<Void>, server: Outcome<Void>) {
        var clientOutcome = Outcome<Void>.wantsWrite
        var serverOutcome = Outcome<Void>.wantsRead
        // Far more turns than any handshake takes.
        for _ in 0..<20 {
            if clientOutcome.isPending { clientOutcome = client.handshake() }
            if serverOutcome.isPending { serverOutcome = server.handshake() }
        }
        return (clientOutcome, serverOutcome)
    }

    /// Makes both sides' handshakes, which must succeed.
    func connect() throws {
        let (client, server) = handshake()
        try client.get()
        try server.get()
    }

    /// What one side sends arrives at the other; a TLS 1.3 client sees its tickets with it.
    func exchange() throws {
        try #require(server.send("pong") == 4)
        #expect(client.receive() == .complete("pong"))
        try #require(client.send("ping") == 4)
        #expect(server.receive() == .complete("ping"))
    }
}

/// Two connected, non-blocking descriptors.
final class SocketPair {
    let client: CInt
    private(set) var server: CInt

    init() throws {
        var pair: [CInt] = [-1, -1]
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &pair) == 0)
        (client, server) = (pair[0], pair[1])
    }

    /// Closes the server's end without notice.
    func closeServer() {
        // A process that another test starts may still hold a copy, until it executes its program.
        shutdown(server, CInt(SHUT_RDWR))
        close(server)
        server = -1
    }

    deinit {
        close(client)
        if server >= 0 { close(server) }
    }
}

/// What the connection tests share: one server certificate and its contexts.
struct Peers: Sendable {
    let root: HeldCertificate
    let leaf: HeldCertificate
    let identity: Identity
    let clientContext: TLSClientContext
    let serverContext: TLSServerContext

    static let shared = Result { try Peers() }

    init() throws {
        root = try HeldCertificate.root()
        leaf = try root.issue(.intermediate("Test Intermediate")).issue(.leaf("api.test"))
        identity = try Peers.identity(leaf)
        clientContext = try TLSClientContext()
        serverContext = try TLSServerContext()
    }

    /// A server of one version only.
    static func server(_ version: TLSVersion) throws -> TLSServerContext {
        var options = TLSServerContext.Options()
        options.versions = version...version
        return try TLSServerContext(options: options)
    }

    static func identity(_ held: HeldCertificate) throws -> Identity {
        try Identity(
            chain: held.chain.map { try Certificate(der: $0.der) }, key: PrivateKey(pem: Array(held.keyPEM.utf8)))
    }
}
