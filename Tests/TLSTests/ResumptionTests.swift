import TestAuthority
import Testing

@testable import TLS

@Suite struct ResumptionTests {
    let peers: Peers
    let here = Array("api.test:443".utf8)

    init() throws { peers = try Peers.shared.get() }

    /// The sessions of a first connection, all of which came with a verdict.
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
        #expect(session.isResumable)
        #expect(session.isSingleUse == (version == .tls13))
        #expect(session.lifetime == 7200)
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
        // By TLS 1.3 a ticket serves once, and resuming brings the next.
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
        let keys = try TicketKeys(lifetime: 100, now: 1000)
        func opens(_ key: TicketKeys.Key?, at now: Int64) -> (found: Bool, isOld: Bool) {
            let found = key?.name.withUnsafeBufferPointer { keys.opening($0, at: now) }
            return (found != nil, found?.isOld ?? false)
        }
        let first = keys.sealing(at: 1000)
        #expect(keys.sealing(at: 1099)?.name == first?.name)
        #expect(opens(first, at: 1099) == (true, false))
        let second = keys.sealing(at: 1100)
        #expect(second?.name != first?.name)
        #expect(second?.cipherKey != first?.cipherKey)
        #expect(second?.macKey != first?.macKey)
        #expect(opens(first, at: 1199) == (true, true))
        #expect(opens(second, at: 1199) == (true, false))
        #expect(opens(first, at: 1200) == (false, false))
        #expect(opens(second, at: 1200) == (true, true))
        // Nothing sealed long ago survives a quiet time.
        #expect(opens(second, at: 5000) == (false, false))
        let unknown = [UInt8](repeating: 0, count: 16)
        #expect(unknown.withUnsafeBufferPointer { keys.opening($0, at: 5000) == nil })
    }
}
