import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// What a server staples to its chain reaches `confirm`, in time and once.
@Suite struct EvidenceTests {
    let peers: Peers

    init() throws { peers = try Peers.shared.get() }

    static let versions = [TLSVersion.tls12, .tls13]

    @Test(arguments: versions)
    func arrives(_ version: TLSVersion) throws {
        let timestamps = try TestLog.timestamps([.init(TestLog("One")), .init(TestLog("Two"))], for: peers.leaf)
        let response = try peers.leaf.issuers[0].statusResponse(for: peers.leaf)
        let evidence = ServerEvidence(response: response, timestamps: TestLog.list(timestamps))
        let run = try run(version, evidence, status: true, timestamps: true)
        try run.pair.connect()
        try run.pair.exchange()
        #expect(run.steps.all == [.verified, .confirmed(PeerEvidence(ocspResponse: response, timestamps: timestamps))])
        withExtendedLifetime(evidence) {}
    }

    @Test(arguments: versions)
    func onlyWhatWasAskedFor(_ version: TLSVersion) throws {
        let timestamps = try TestLog.timestamps([.init(TestLog("One"))], for: peers.leaf)
        let response = try peers.leaf.issuers[0].statusResponse(for: peers.leaf)
        let evidence = ServerEvidence(response: response, timestamps: TestLog.list(timestamps))
        let status = try run(version, evidence, status: true, timestamps: false)
        try status.pair.connect()
        #expect(status.steps.all == [.verified, .confirmed(PeerEvidence(ocspResponse: response))])
        let nothing = try run(version, evidence, status: false, timestamps: false)
        try nothing.pair.connect()
        #expect(nothing.steps.all == [.verified, .confirmed(PeerEvidence())])
        withExtendedLifetime(evidence) {}
    }

    @Test(arguments: versions)
    func aServerWithoutAny(_ version: TLSVersion) throws {
        let run = try run(version, nil, status: true, timestamps: true)
        try run.pair.connect()
        #expect(run.steps.all == [.verified, .confirmed(PeerEvidence())])
    }

    /// An unparsable list of timestamps counts as absent; the response is passed on unchanged.
    @Test(arguments: versions)
    func nonsense(_ version: TLSVersion) throws {
        let evidence = ServerEvidence(response: [1, 2, 3], timestamps: [0, 9, 1])
        let run = try run(version, evidence, status: true, timestamps: true)
        try run.pair.connect()
        #expect(run.steps.all == [.verified, .confirmed(PeerEvidence(ocspResponse: [1, 2, 3]))])
        withExtendedLifetime(evidence) {}
    }

    /// OpenSSL would parse the response for its timestamps. If it must not be parsed, timestamps aren't taken.
    @Test(arguments: versions)
    func aCostlyResponse(_ version: TLSVersion) throws {
        let issuer = peers.leaf.issuers[0]
        let responder = try issuer.issue(
            CertificateTemplate(commonName: "Responder").with {
                $0.extensions = [
                    (CostlyCertificates.distributionPoints, false, CostlyCertificates.relativeDistributionPoints(1))
                ]
            })
        let response = try issuer.statusResponse(for: peers.leaf, StatusTemplate().with { $0.responder = responder })
        let timestamps = try TestLog.timestamps([.init(TestLog("One"))], for: peers.leaf)
        let evidence = ServerEvidence(response: response, timestamps: TestLog.list(timestamps))
        let run = try run(version, evidence, status: true, timestamps: true)
        let parsed = try ParsedObjects.count { try run.pair.connect() }
        #expect(run.steps.all == [.verified, .confirmed(PeerEvidence(ocspResponse: response))])
        // The server's chain of two, each begun twice.
        #expect(parsed.certificates == 4)
        withExtendedLifetime(evidence) {}
    }

    @Test(arguments: versions, [true, false])
    func rejecting(_ version: TLSVersion, _ asks: Bool) throws {
        let evidence = ServerEvidence(response: [1])
        let run = try run(version, evidence, status: asks, timestamps: false, verdict: .reject(x509Code: 23))
        let (client, server) = run.pair.handshake()
        #expect(client.kind == .certificateRejected)
        // bad_certificate_status_response, or certificate_revoked where the chain's own verdict carries it.
        #expect(server.kind == .alertReceived(asks ? 113 : 44))
        #expect(run.sessions.count == 0)
        withExtendedLifetime(evidence) {}
    }

    /// TLS 1.3 has the evidence beside the certificates, and 1.2 has timestamps in the ServerHello.
    @Test(arguments: versions, [true, false])
    func aRejectedChainStaysRejected(_ version: TLSVersion, _ asks: Bool) throws {
        let timestamps = try TestLog.timestamps([.init(TestLog("One"))], for: peers.leaf)
        let response = try peers.leaf.issuers[0].statusResponse(for: peers.leaf)
        let evidence = ServerEvidence(response: response, timestamps: TestLog.list(timestamps))
        let run = try run(version, evidence, status: asks, timestamps: asks, verify: .reject(x509Code: 10))
        let (client, server) = run.pair.handshake()
        #expect(client.kind == .certificateRejected)
        // certificate_expired, as `verify` said.
        #expect(server.kind == .alertReceived(45))
        let arrived = PeerEvidence(ocspResponse: version == .tls13 ? response : nil, timestamps: timestamps)
        #expect(run.steps.all == [.verified] + (asks ? [.confirmed(arrived)] : []))
        #expect(run.sessions.count == 0)
        withExtendedLifetime(evidence) {}
    }

    @Test(arguments: versions)
    func aResumedSessionIsNotAskedAgain(_ version: TLSVersion) throws {
        let evidence = ServerEvidence(response: [1, 2])
        let server = try server(version, evidence)
        let first = try run(server, status: true, timestamps: true)
        try first.pair.connect()
        try first.pair.exchange()
        let session = try #require(first.sessions.kept.first)
        let second = try run(server, status: true, timestamps: true, session: session, verdict: .reject(x509Code: 1))
        try second.pair.connect()
        try second.pair.exchange()
        #expect(second.pair.client.isResumed)
        #expect(second.steps.all.isEmpty)
        withExtendedLifetime(evidence) {}
    }

    /// Evidence that isn't checked, here an invalid OCSP response, doesn't prevent a connection.
    @Test(arguments: versions)
    func withoutConfirmEvidenceIsIgnored(_ version: TLSVersion) throws {
        let evidence = ServerEvidence(response: [1, 2])
        var options = TLSClientContext.Options()
        options.requestsStatus = true
        let pair = try ConnectionPair(
            client: TLSClientContext(options: options), server: server(version, evidence), identity: peers.identity)
        try pair.connect()
        try pair.exchange()
        #expect(evidence.requests == 1)
        withExtendedLifetime(evidence) {}
    }

    // MARK: Bed

    enum Step: Hashable {
        case verified
        case confirmed(PeerEvidence)
    }
    final class Steps { var all: [Step] = [] }
    final class Sessions {
        var kept: [TLSSession] = []
        var count: Int { kept.count }
    }

    struct Run {
        let pair: ConnectionPair
        let steps: Steps
        let sessions: Sessions
    }

    private func server(_ version: TLSVersion, _ evidence: ServerEvidence?) throws -> TLSServerContext {
        let server = try Peers.server(version)
        try evidence?.install(on: server.handle.pointer)
        return server
    }

    private func run(
        _ version: TLSVersion, _ evidence: ServerEvidence?, status: Bool, timestamps: Bool,
        verify: PeerVerdict = .accept, verdict: PeerVerdict = .accept
    ) throws -> Run {
        try run(server(version, evidence), status: status, timestamps: timestamps, verify: verify, verdict: verdict)
    }

    private func run(
        _ server: TLSServerContext, status: Bool, timestamps: Bool, session: TLSSession? = nil,
        verify: PeerVerdict = .accept, verdict: PeerVerdict = .accept
    ) throws -> Run {
        var options = TLSClientContext.Options()
        options.requestsStatus = status
        options.requestsTimestamps = timestamps
        let (steps, sessions) = (Steps(), Sessions())
        let pair = try ConnectionPair(
            client: TLSClientContext(options: options), server: server, identity: peers.identity, session: session,
            verify: { _ in
                steps.all.append(.verified)
                return verify
            },
            confirm: {
                steps.all.append(.confirmed($0))
                return verdict
            }, onSession: { sessions.kept.append($0) })
        return Run(pair: pair, steps: steps, sessions: sessions)
    }
}
