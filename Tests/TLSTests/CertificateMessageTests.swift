import PinproxyTestAuthority
import Testing

@testable import PinproxyTLS

/// A server's certificates are checked before OpenSSL parses them.
@Suite struct CertificateMessageTests {
    let peers: Peers

    init() throws { peers = try Peers.shared.get() }

    static let versions = [TLSVersion.tls12, .tls13]

    // MARK: Over the wire

    /// No certificate is parsed, wherever the costly one is.
    @Test(arguments: versions, [0, 1, 2])
    func aCostlyCertificate(_ version: TLSVersion, _ place: Int) throws {
        let costly = try unchecked(
            HeldCertificate.root().issue(
                .intermediate("Costly").with { $0.publicKeyDER = CostlyCertificates.explicitCurve() }))
        let other = try Certificate(der: peers.leaf.issuers[0].der)
        var rest = [other, other]
        rest.insert(costly, at: place)
        let run = try handshake(version, rest)
        #expect(run.outcome.kind == .certificateTooCostly)
        #expect(
            run.outcome.message
                == "certificate \(place + 2) of 4 from the peer is refused: \(CertificateLimitsTests.ownCurve)")
        // The first certificate, which was spoilt.
        #expect(run.certificates <= 1)
        #expect(run.curveKeys == 0)
        #expect(!run.isVerified)
        // bad_certificate
        #expect(run.server.kind == .alertReceived(42))
    }

    @Test(arguments: versions)
    func relativeNames(_ version: TLSVersion) throws {
        let points = CostlyCertificates.relativeDistributionPoints(5)
        let costly = try unchecked(
            HeldCertificate.root().issue(
                .intermediate("Costly").with {
                    $0.extensions = [(CostlyCertificates.distributionPoints, false, points)]
                }))
        let run = try handshake(version, [costly])
        #expect(run.outcome.kind == .certificateTooCostly)
        #expect(run.outcome.message?.hasSuffix("(nameRelativeToCRLIssuer)") == true)
        #expect(!run.isVerified)
    }

    @Test(arguments: versions, [(31, true), (32, false)])
    func manyCertificates(_ version: TLSVersion, _ count: (rest: Int, isAccepted: Bool)) throws {
        let other = try Certificate(der: HeldCertificate.root().der)
        let run = try handshake(version, [Certificate](repeating: other, count: count.rest))
        #expect(run.isVerified == count.isAccepted)
        // OpenSSL begins one twice, so the other counts are meaningful.
        #expect(run.certificates == (count.isAccepted ? 2 * (1 + count.rest) : 1))
        guard !count.isAccepted else { return }
        #expect(run.outcome.kind == .certificateTooCostly)
        #expect(run.outcome.message == "the peer sent 33 certificates; the limit is 32")
    }

    // MARK: Forms of the message

    private static func message(_ certificates: [[UInt8]], isTLS13: Bool) -> [UInt8] {
        func vector(_ width: Int, _ bytes: [UInt8]) -> [UInt8] {
            (0..<width).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
        }
        let list = certificates.flatMap { vector(3, $0) + (isTLS13 ? vector(2, [0, 5, 0, 0]) : []) }
        return [11] + vector(3, (isTLS13 ? [0] : []) + vector(3, list))
    }

    @Test(arguments: [false, true])
    func everyPrefix(_ isTLS13: Bool) throws {
        let good = peers.leaf.der
        let costly = try HeldCertificate.root().issue(
            .leaf("x").with { $0.publicKeyDER = CostlyCertificates.compressedP224 }
        ).der
        let message = Self.message([good, costly, good], isTLS13: isTLS13)
        #expect(CertificateMessage(message.span, isTLS13: isTLS13).objection?.hasPrefix("certificate 2 of 3 ") == true)
        for count in 0..<message.count {
            let prefix = Array(message[..<count])
            // The list is longer than the data.
            #expect(CertificateMessage(prefix.span, isTLS13: isTLS13).objection == nil)
        }
        #expect(
            CertificateMessage(Self.message([good, good], isTLS13: isTLS13).span, isTLS13: isTLS13).objection == nil)
        #expect(CertificateMessage(Self.message([], isTLS13: isTLS13).span, isTLS13: isTLS13).objection == nil)
        let empty = CertificateMessage(Self.message([[], good], isTLS13: isTLS13).span, isTLS13: isTLS13)
        #expect(empty.objection == "certificate 1 of 2 from the peer is refused: its encoding is not DER")
    }

    /// Every length may be false. What is spoilt is inside the message, and is the first certificate's tag.
    @Test(arguments: [false, true])
    func randomChanges(_ isTLS13: Bool) throws {
        var chance = Chance(seed: 5)
        let costly = try HeldCertificate.root().issue(
            .leaf("x").with { $0.publicKeyDER = CostlyCertificates.compressedP224 }
        ).der
        let whole = Self.message([peers.leaf.der, costly], isTLS13: isTLS13)
        let first = isTLS13 ? 11 : 10
        for _ in 0..<3000 {
            var message = whole
            let index = Int.random(in: 0..<14, using: &chance)
            message[index] = UInt8.random(in: 0...255, using: &chance)
            let seen = CertificateMessage(message.span, isTLS13: isTLS13)
            let before = message
            message.withUnsafeMutableBytes { seen.spoil($0) }
            let changed = message.indices.filter { message[$0] != before[$0] }
            #expect(changed.isEmpty || changed.count == 1 && (isTLS13 || changed == [first]))
        }
    }

    // MARK: The budget

    @Test(arguments: versions)
    func aHandshakeThatTakesTooLong(_ version: TLSVersion) throws {
        var options = TLSClientContext.Options()
        options.handshakeNanoseconds = 0
        let pair = try ConnectionPair(
            client: TLSClientContext(options: options), server: Peers.server(version), identity: peers.identity)
        let (client, _) = pair.handshake()
        #expect(client.kind == .handshakeTooCostly)
        #expect(client.message?.hasPrefix("the handshake took more processor time than is allowed (0 ms)") == true)
    }

    // MARK: Bed

    private func unchecked(_ held: HeldCertificate) throws -> Certificate { Certificate(owning: try held.parsed()) }

    private struct Run {
        let outcome, server: Outcome<Void>
        let certificates, curveKeys: Int
        let isVerified: Bool
    }

    /// Makes a handshake with a server that sends the usual leaf, followed by these.
    private func handshake(_ version: TLSVersion, _ rest: [Certificate]) throws -> Run {
        let chain = [try Certificate(der: peers.leaf.der)] + rest
        let identity = try Identity(chain: chain, key: PrivateKey(pem: Array(peers.leaf.keyPEM.utf8)))
        var isVerified = false
        let pair = try ConnectionPair(client: peers.clientContext, server: Peers.server(version), identity: identity) {
            _ in
            isVerified = true
            return .accept
        }
        var outcome = Outcome<Void>.wantsWrite
        var server = Outcome<Void>.wantsRead
        var made = (certificates: 0, curveKeys: 0)
        for _ in 0..<20 {
            if outcome.isPending {
                let turn = ParsedObjects.count { pair.client.handshake() }
                outcome = turn.result
                made = (made.certificates + turn.certificates, made.curveKeys + turn.curveKeys)
            }
            if server.isPending { server = pair.server.handshake() }
        }
        return Run(
            outcome: outcome, server: server, certificates: made.certificates, curveKeys: made.curveKeys,
            isVerified: isVerified)
    }
}
