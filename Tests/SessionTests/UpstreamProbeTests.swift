import Foundation
import PinproxySecurity
import PinproxyTLS
import PinproxyTestAuthority
import PinproxyTransport
import Testing

@testable import PinproxyEventLoop
@testable import PinproxySession

@Suite struct UpstreamProbeTests {
    private let authority: OriginAuthority

    init() throws {
        authority = try OriginAuthority.shared.get()
    }

    private func origin(_ versions: ClosedRange<TLSVersion> = .tls12 ... .tls13) throws -> Peer {
        let context = try OriginAuthority.context(versions)
        return try Peer { [authority] in authority.serve($0, with: context) }
    }

    private func target(
        _ bench: Workbench, port: UInt16, name: String = "api.test", policy: SecurityPolicy = SecurityPolicy()
    ) -> UpstreamTarget {
        UpstreamTarget(
            host: "api.test", port: port, layer: .verifiedTunnel(policy, authority.anchors, .dns(name)),
            upstream: UpstreamSettings(anchors: authority.anchors))
    }

    private func probe(
        _ bench: Workbench, _ target: UpstreamTarget, at port: UInt16, applicationProtocols: [String]? = nil
    ) throws -> UpstreamProbe.Outcome {
        let address = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: port)
        var outcome: UpstreamProbe.Outcome?
        let probe = bench.connector.probe(
            target, at: address, applicationProtocols: applicationProtocols, timeouts: Timeouts()
        ) { [stop = bench.stop] in
            outcome = $0
            stop.isWanted = true
        }
        bench.run()
        return try withExtendedLifetime(probe) { try #require(outcome) }
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func anAcceptedOriginIsFoundAndRememberedByWhatWasOffered(_ version: TLSVersion) throws {
        let peer = try origin(version...version)
        let bench = try Workbench()
        // The name isn't looked up: no name server answers.
        let target = target(bench, port: peer.port)
        for (protocols, isNew) in [(nil, true), (nil, false), (["h2", "http/1.1"], false), (["http/1.1"], true)]
            as [([String]?, Bool)]
        {
            guard
                case .found(let finding, let isFresh) = try probe(
                    bench, target, at: peer.port, applicationProtocols: protocols)
            else { throw Unexpected(text: "not accepted") }
            #expect(isFresh == isNew)
            #expect(finding.verdict.isAccepted && finding.version == version)
        }
        // Another policy makes its own probe.
        let other = self.target(bench, port: peer.port, policy: SecurityPolicy(validatesDomainName: false))
        guard case .found(_, isFresh: true) = try probe(bench, other, at: peer.port) else {
            throw Unexpected(text: "remembered under another policy")
        }
        #expect(bench.slabs.inUse == 0)
    }

    @Test func aRefusalIsAFailureWithItsVerdictAndIsntRemembered() throws {
        let peer = try origin()
        let bench = try Workbench()
        for _ in 0..<2 {
            guard
                case .failed(.refused(let verdict, _)) = try probe(
                    bench, target(bench, port: peer.port, name: "other.test"), at: peer.port)
            else { throw Unexpected(text: "not refused") }
            #expect(verdict.refusal != nil)
        }
    }

    @Test func aRevocationEndsWhatProbesFoundOfTheHostUnderEveryPolicy() throws {
        let peer = try origin()
        let bench = try Workbench()
        let plain = target(bench, port: peer.port)
        func isFresh() throws -> Bool {
            guard case .found(_, let isFresh) = try probe(bench, plain, at: peer.port) else {
                throw Unexpected(text: "not found")
            }
            return isFresh
        }
        #expect(try isFresh())
        #expect(try !isFresh())
        // A refusal for another name keeps this result.
        _ = try probe(bench, target(bench, port: peer.port, name: "other.test"), at: peer.port)
        #expect(try !isFresh())
        let revoking = SecurityPolicy(requirements: TrustRequirements(revocationLists: try authority.revokingLists()))
        guard
            case .failed(.refused(let verdict, _)) = try probe(
                bench, target(bench, port: peer.port, policy: revoking), at: peer.port),
            verdict.refusal?.isRevocation == true
        else { throw Unexpected(text: "not revoked") }
        #expect(try isFresh())
    }

    @Test func anAddressWhereNobodyListensFails() throws {
        // Bound, which keeps others off the port, but not listening.
        let holder = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(holder) }
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        try #require(any.withSockaddr { bind(holder, $0, $1) } == 0)
        let port = try #require(Socket.localAddress(holder)).port
        let bench = try Workbench()
        guard case .failed(.unreachable) = try probe(bench, target(bench, port: port), at: port) else {
            throw Unexpected(text: "reached")
        }
    }

    /// A chain is public: a server that presents it and stops before signing may have copied it.
    @Test func anAlertBeforeTheKeyIsProvedIsAFailure() throws {
        let chain = authority.identity.chain.map(\.der)
        let peer = try Peer { descriptor in
            var bytes = [UInt8](repeating: 0, count: 4096)
            _ = recv(descriptor, &bytes, bytes.count, 0)
            let flight = CopiedFlight.bytes(chain: chain)
            _ = send(descriptor, flight, flight.count, CInt(MSG_NOSIGNAL))
            readToEnd(descriptor)
        }
        let bench = try Workbench()
        guard case .failed(.tls) = try probe(bench, target(bench, port: peer.port), at: peer.port)
        else { throw Unexpected(text: "found") }
    }

    @Test func anEndWithoutAnAlertIsNoFinding() throws {
        let chain = authority.identity.chain.map(\.der)
        let peer = try Peer { descriptor in
            var bytes = [UInt8](repeating: 0, count: 4096)
            _ = recv(descriptor, &bytes, bytes.count, 0)
            let flight = CopiedFlight.bytes(chain: chain).dropLast(7)
            _ = send(descriptor, Array(flight), flight.count, CInt(MSG_NOSIGNAL))
        }
        let bench = try Workbench()
        guard case .failed(.tls) = try probe(bench, target(bench, port: peer.port), at: peer.port) else {
            throw Unexpected(text: "found")
        }
    }
}

/// A first flight of TLS 1.2 that anyone who has seen a chain can send: ServerHello, Certificate, alert.
enum CopiedFlight {
    static func bytes(chain: [[UInt8]]) -> [UInt8] {
        let list = vector(3, chain.flatMap { vector(3, $0) })
        // ECDHE-ECDSA-AES128-GCM-SHA256, and renegotiation_info, which OpenSSL requires.
        let hello = [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0xC0, 0x2B, 0] + vector(2, [0xFF, 1, 0, 1, 0])
        return record(22, [2] + vector(3, hello)) + record(22, [11] + vector(3, list)) + record(21, [2, 40])
    }

    private static func vector(_ lengthBytes: Int, _ body: [UInt8]) -> [UInt8] {
        (0..<lengthBytes).reversed().map { UInt8(truncatingIfNeeded: body.count >> ($0 * 8)) } + body
    }

    private static func record(_ type: UInt8, _ body: [UInt8]) -> [UInt8] { [type, 3, 3] + vector(2, body) }
}
