import CPinproxyOpenSSL
import PinproxyTestAuthority
import Synchronization
import Testing

@testable import PinproxyTLS

@Suite struct ResumptionTests {
    let peers: Peers
    let here = Array("api.test:443".utf8)

    init() throws { peers = try Peers.shared.get() }

    /// The sessions of a first connection, which is verified once.
    private func sessions(_ server: TLSServerContext, name: String = "api.test") throws -> [TLSSession] {
        var kept: [TLSSession] = []
        var verdicts = 0
        let pair = try ConnectionPair(
            client: peers.clientContext, server: server, identity: peers.identity, ticketContext: here,
            serverName: .dns(name),
            verify: { _ in
                verdicts += 1
                return .accept
            }, onSession: { kept.append($0) })
        try pair.connect()
        try pair.exchange()
        #expect(verdicts == 1)
        return kept
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func resumes(_ version: TLSVersion) throws {
        let server = try Peers.server(version)
        let first = try sessions(server)
        // One ticket a handshake.
        #expect(first.count == 1)
        let session = try #require(first.first)
        #expect(SSL_SESSION_is_resumable(session.pointer) == 1)
        #expect(session.isSingleUse == (version == .tls13))
        #expect(SSL_SESSION_get_timeout(session.pointer) == 7200)
        var renewed = 0
        let pair = try ConnectionPair(
            client: peers.clientContext, server: server, identity: peers.identity, ticketContext: here,
            session: session,
            verify: { _ in
                Issue.record("a resumed session shows no certificate")
                return .reject(x509Code: 1)
            }, onSession: { _ in renewed += 1 })
        try pair.connect()
        #expect(pair.client.isResumed)
        #expect(pair.server.isResumed)
        #expect(pair.client.version == version)
        #expect(pair.client.peerChain == nil)
        #expect(pair.server.clientServerName == "api.test")
        #expect(pair.client.alpn == "http/1.1")
        try pair.exchange()
        // In TLS 1.3 a ticket serves once, and resumption brings the next.
        #expect(renewed == (version == .tls13 ? 1 : 0))
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func aTicketOfAnotherContextIsNotResumed(_ version: TLSVersion) throws {
        let server = try Peers.server(version)
        let session = try #require(try sessions(server).first)
        var verdicts = 0
        let pair = try ConnectionPair(
            client: peers.clientContext, server: server, identity: peers.identity,
            ticketContext: Array("other.test:443".utf8), session: session,
            verify: { _ in
                verdicts += 1
                return .accept
            })
        try pair.connect()
        #expect(!pair.client.isResumed)
        #expect(!pair.server.isResumed)
        #expect(verdicts == 1)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func anotherServersTicketIsNotResumed(_ version: TLSVersion) throws {
        let session = try #require(try sessions(Peers.server(version)).first)
        let pair = try ConnectionPair(
            client: peers.clientContext, server: Peers.server(version), identity: peers.identity,
            ticketContext: here, session: session)
        try pair.connect()
        #expect(!pair.client.isResumed)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func theNameSeenIsThisConnections(_ version: TLSVersion) throws {
        let server = try Peers.server(version)
        let session = try #require(try sessions(server, name: "api.test").first)
        let pair = try ConnectionPair(
            client: peers.clientContext, server: server, identity: peers.identity, ticketContext: here,
            serverName: .dns("evil.test"), session: session)
        _ = pair.handshake()
        #expect(pair.server.clientServerName == "evil.test")
    }

    @Test func ticketContextsAreBounded() throws {
        for (count, fits) in [(0, true), (32, true), (33, false)] {
            let pair = try? ConnectionPair(
                client: peers.clientContext, server: peers.serverContext, identity: peers.identity,
                ticketContext: [UInt8](repeating: 1, count: count))
            #expect((pair != nil) == fits)
        }
    }

    @Test func keysSealForOneLifetimeAndOpenForTwo() throws {
        let clock = TestClock(1000)
        let keys = try TicketKeys(lifetime: 100, clock: clock.read)
        func opens(_ key: TicketKeys.Key?) -> (found: Bool, isOld: Bool) {
            let found = key?.name.withUnsafeBufferPointer { keys.opening($0) }
            return (found != nil, found?.isOld ?? false)
        }
        let first = keys.sealing()
        clock.set(1099)
        #expect(keys.sealing()?.name == first?.name)
        #expect(opens(first) == (true, false))
        clock.set(1100)
        let second = keys.sealing()
        #expect(second?.name != first?.name)
        #expect(second?.cipherKey != first?.cipherKey)
        #expect(second?.macKey != first?.macKey)
        clock.set(1199)
        #expect(opens(first) == (true, true))
        #expect(opens(second) == (true, false))
        clock.set(1200)
        #expect(opens(first) == (false, false))
        #expect(opens(second) == (true, true))
        // Nothing sealed long ago survives a quiet time.
        clock.set(5000)
        #expect(opens(second) == (false, false))
        let unknown = [UInt8](repeating: 0, count: 16)
        #expect(unknown.withUnsafeBufferPointer { keys.opening($0) == nil })
    }

    /// A key's expiry also holds where tickets are redeemed. OpenSSL checks a session's age by the machine's clock,
    /// which stands still here: only the key can refuse.
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func aTicketIsRefusedOnceItsKeyHasExpired(_ version: TLSVersion) throws {
        let clock = TestClock(1000)
        var options = TLSServerContext.Options()
        options.versions = version...version
        options.clock = clock.read
        let server = try TLSServerContext(options: options)
        let resumes = { (session: TLSSession) in
            let pair = try ConnectionPair(
                client: peers.clientContext, server: server, identity: peers.identity, ticketContext: here,
                session: session)
            try pair.connect()
            return pair.client.isResumed
        }
        for (age, isGood) in [(7199, true), (14_399, true), (14_400, false), (100_000, false)] as [(Int64, Bool)] {
            let session = try #require(try sessions(server).first)
            // The key was just made, by the context or by the first use after a lifetime.
            let sealed = clock.read()
            clock.set(sealed + age)
            #expect(try resumes(session) == isGood, "\(age) s")
            clock.set(sealed + 1_000_000)
        }
    }
}

/// A clock that stands still unless the test moves it.
private final class TestClock: Sendable {
    private let seconds: Mutex<Int64>
    init(_ seconds: Int64) { self.seconds = Mutex(seconds) }
    func set(_ seconds: Int64) { self.seconds.withLock { $0 = seconds } }
    @Sendable func read() -> Int64 { seconds.withLock { $0 } }
}
