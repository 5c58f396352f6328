import Foundation
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTestAuthority
import PinproxyTransport
import Testing

@testable import PinproxyEventLoop

@Suite struct UpstreamAttemptTests {
    private let authority: OriginAuthority

    init() throws {
        authority = try OriginAuthority.shared.get()
    }

    private func origin(_ versions: ClosedRange<TLSVersion> = .tls12 ... .tls13) throws -> Peer {
        let context = try OriginAuthority.context(versions)
        return try Peer { [authority] in authority.serve($0, with: context, greeting: "hello") }
    }

    private func pinned(_ text: String = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") throws -> SecurityPolicy
    {
        let digest = try #require(SHA256Digest(base64: String(text.dropFirst(7))))
        return SecurityPolicy(mode: .publicKey, pins: PinSet([Pin(.spki(digest), origin: text)]))
    }

    // MARK: Success and refusal

    @Test func aVerifiedConnectionCarriesBytesAndItsVerdict() throws {
        let peer = try origin()
        let bench = try Workbench()
        let connection = try bench.connect(to: bench.target(port: peer.port)).get()
        #expect(connection.verdict?.isAccepted == true)
        #expect(connection.validUntil > CertificateTemplate.now)
        #expect(connection.address.port == peer.port)
        #expect(bench.receive(on: connection) == "hello")
        connection.close()
        #expect(bench.slabs.inUse == 0)
    }

    @Test func theRightPinIsAccepted() throws {
        let peer = try origin()
        let bench = try Workbench()
        let policy = try pinned("sha256/" + authority.identity.chain[0].spkiSHA256.base64)
        let connection = try bench.connect(to: bench.target(port: peer.port, policy: policy)).get()
        #expect(connection.verdict?.matchedPin != nil)
        connection.close()
    }

    @Test func aWrongPinIsRefusedWithTheVerdictAndTheOriginIsLeft() throws {
        let left = Mailbox<Bool>()
        let context = try OriginAuthority.context()
        let peer = try Peer { [authority] descriptor in
            authority.serve(descriptor, with: context)
            readToEnd(descriptor)
            left.put(true)
        }
        let bench = try Workbench()
        guard case .refused(let verdict, _) = try bench.failure(to: bench.target(port: peer.port, policy: pinned()))
        else { throw Unexpected(text: "not refused") }
        #expect(verdict.refusal?.isPinFailure == true)
        #expect(left.take())
        #expect(bench.sessions.take(for: try bench.target(port: peer.port, policy: pinned()).key, at: 0) == nil)
    }

    @Test func aWrongNameIsRefusedAsUntrusted() throws {
        let peer = try origin()
        let bench = try Workbench()
        guard case .refused(let verdict, _) = try bench.failure(to: bench.target(port: peer.port, name: "other.test"))
        else { throw Unexpected(text: "not refused") }
        guard case .trust? = verdict.refusal?.reason else { throw Unexpected(text: "\(verdict)") }
    }

    @Test func theGivenClockDecidesAboutValidity() throws {
        let peer = try origin()
        let bench = try Workbench(at: CertificateTemplate.now + 400 * 86400)
        guard case .refused = try bench.failure(to: bench.target(port: peer.port))
        else { throw Unexpected(text: "not refused") }
    }

    @Test(arguments: [OnExpiry.enforce, .report, .deny])
    func whatWasVerifiedBeforeThePinsExpiredServesAsLongAsThePolicyLetsIt(_ action: OnExpiry) throws {
        let peer = try origin()
        let bench = try Workbench()
        let pins = try pinned("sha256/" + authority.identity.chain[0].spkiSHA256.base64).pins
        let end = CertificateTemplate.now + 100
        let policy = SecurityPolicy(mode: .publicKey, pins: pins, expiry: PinExpiry(date: end, action: action))
        let target = try bench.target(port: peer.port, policy: policy)
        let connection = try bench.connect(to: target).get()
        #expect((connection.validUntil == end) == (action == .deny))
        // TLS 1.3 delivers its sessions with the first read.
        #expect(bench.receive(on: connection) == "hello")
        connection.close()
        #expect((bench.sessions.take(for: target.key, at: end) == nil) == (action == .deny))
    }

    @Test func whatDoesntSpeakTLSIsAFailureOfTLS() throws {
        let peer = try Peer { descriptor in
            say("HTTP/1.1 400 Bad Request\r\n\r\n", to: descriptor)
            readToEnd(descriptor)
        }
        let bench = try Workbench()
        guard case .tls = try bench.failure(to: bench.target(port: peer.port))
        else { throw Unexpected(text: "not a failure of TLS") }
    }

    @Test func anOriginThatClosesInTheHandshakeIsAFailureOfTLS() throws {
        let peer = try Peer { descriptor in
            var byte: UInt8 = 0
            _ = read(descriptor, &byte, 1)
        }
        let bench = try Workbench()
        guard case .tls = try bench.failure(to: bench.target(port: peer.port))
        else { throw Unexpected(text: "not a failure of TLS") }
    }

    // MARK: Before TLS

    @Test func aNameThatDoesntExistIsUnresolved() throws {
        let server = try NameServer(answers: true)
        let bench = try Workbench(nameServer: server.address)
        guard case .unresolved(.notFound) = try bench.failure(to: bench.target(port: 443, host: "nowhere.test"))
        else { throw Unexpected(text: "resolved") }
    }

    @Test func aPortThatNoOneListensOnIsUnreachable() throws {
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        // Bound, which keeps others off the port, but not listening.
        let holder = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(holder) }
        try #require(any.withSockaddr { bind(holder, $0, $1) } == 0)
        let port = try #require(Socket.localAddress(holder)).port
        let bench = try Workbench()
        guard case .unreachable(let error) = try bench.failure(to: bench.target(port: port))
        else { throw Unexpected(text: "reached") }
        #expect(error.attempts.map(\.error.code) == [ECONNREFUSED])
    }

    @Test(arguments: [
        ("127.0.0.1", AddressClass.loopback), ("169.254.169.254", .linkLocal), ("::ffff:127.0.0.1", .loopback),
    ])
    func aBlockedAddressIsntDialled(host: String, blocked: AddressClass) throws {
        let bench = try Workbench()
        let target = try bench.target(port: 1, host: host, addresses: AddressRules(blocked: [.kind(blocked)]))
        guard case .blocked(let address, let found) = try bench.failure(to: target)
        else { throw Unexpected(text: "dialled") }
        #expect(address == IPAddress(host))
        #expect(found == .blocked(.kind(blocked)))
    }

    /// The peer would answer if it were dialled.
    @Test(arguments: [false, true]) func theProxysOwnListenerIsntDialledAsAParentNeither(
        isParent: Bool
    ) throws {
        let peer = try Peer { readToEnd($0) }
        let bench = try Workbench()
        bench.listeners.replace(with: [SocketAddress(ip: try #require(IPAddress("0.0.0.0")), port: peer.port)])
        for host in ["127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1", "127.7.7.7"] {
            let target =
                isParent
                ? try bench.target(port: 443, parent: ParentProxy(host: host, port: peer.port))
                : try bench.target(port: peer.port, host: host)
            guard case .itself(let address, isParent) = try bench.failure(to: target) else {
                throw Unexpected(text: host)
            }
            #expect(address.port == peer.port)
        }
    }

    // MARK: Deadlines

    @Test func aNameServerThatIsSilentIsWaitedForSoLong() throws {
        let server = try NameServer(answers: false)
        let bench = try Workbench(nameServer: server.address)
        let failure = try bench.failure(to: bench.target(port: 443, host: "slow.test"), timeouts: .short)
        guard case .timedOut(.nameLookup) = failure else { throw Unexpected(text: "\(failure)") }
    }

    @Test func anAddressThatIsSilentIsWaitedForSoLong() throws {
        let full = try FullListener()
        let bench = try Workbench()
        let failure = try bench.failure(to: bench.target(port: full.port), timeouts: .short)
        guard case .timedOut(.connect) = failure else { throw Unexpected(text: "\(failure)") }
    }

    @Test func anOriginThatDoesntShakeHandsIsWaitedForSoLong() throws {
        let left = Mailbox<Bool>()
        let peer = try Peer { descriptor in
            readToEnd(descriptor)
            left.put(true)
        }
        let bench = try Workbench()
        var timeouts = Timeouts()
        timeouts.tlsHandshake = .milliseconds(30)
        let failure = try bench.failure(to: bench.target(port: peer.port), timeouts: timeouts)
        guard case .timedOut(.tls) = failure else { throw Unexpected(text: "\(failure)") }
        #expect(left.take(), "the connection is closed")
    }

    @Test func aParentThatDoesntAnswerIsWaitedForSoLong() throws {
        let peer = try Peer { readToEnd($0) }
        let bench = try Workbench()
        let target = try bench.target(port: 443, parent: ParentProxy(host: "127.0.0.1", port: peer.port))
        var timeouts = Timeouts()
        timeouts.connect = .milliseconds(30)
        let failure = try bench.failure(to: target, timeouts: timeouts)
        guard case .timedOut(.parent) = failure else { throw Unexpected(text: "\(failure)") }
    }

    // MARK: Cancelling

    @Test func anAttemptThatWasCancelledAtOnceDoesNothing() throws {
        let bench = try Workbench()
        let attempt = bench.connector.connect(to: try bench.target(port: 1), timeouts: Timeouts()) { _ in
            Issue.record("completed")
        }
        attempt.cancel()
        bench.loop.afterThisTurn { [bench] in bench.loop.afterThisTurn { bench.stop.isWanted = true } }
        bench.run()
    }

    /// The far side reports through the inbox that its step was reached, and must then see the connection close.
    @Test(arguments: [false, true]) func cancellingClosesTheAttemptedConnection(inParent: Bool) throws {
        let left = Mailbox<Bool>()
        let bench = try Workbench()
        let handle = bench.loop.handle
        let stop = bench.stop
        let peer = try Peer { descriptor in
            var byte: UInt8 = 0
            _ = read(descriptor, &byte, 1)
            handle.post { _ in stop.isWanted = true }
            readToEnd(descriptor)
            left.put(true)
        }
        let target =
            inParent
            ? try bench.target(port: 443, parent: ParentProxy(host: "127.0.0.1", port: peer.port))
            : try bench.target(port: peer.port)
        let attempt = bench.connector.connect(to: target, timeouts: Timeouts()) { _ in Issue.record("completed") }
        bench.run()
        attempt.cancel()
        #expect(left.take())
        #expect(bench.slabs.inUse == 0)
    }

    // MARK: Resumption

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func aSessionIsResumedUnderTheSameKeyOnlyWithItsVerdict(version: TLSVersion) throws {
        let peer = try origin(version...version)
        let bench = try Workbench()
        func isResumed(_ policy: SecurityPolicy) throws -> Bool {
            let connection = try bench.connect(to: bench.target(port: peer.port, policy: policy)).get()
            #expect(bench.receive(on: connection) == "hello")
            #expect(connection.verdict?.isAccepted == true)
            #expect(connection.verdict?.chain != nil)
            defer { connection.close() }
            return connection.stream.withTLS { $0.isResumed } == true
        }
        let plain = SecurityPolicy()
        let other = try pinned("sha256/" + authority.identity.chain[0].spkiSHA256.base64)
        #expect(try !isResumed(plain))
        #expect(try isResumed(plain))
        #expect(try isResumed(plain), "a resumed connection leaves a session too")
        #expect(try !isResumed(other), "another policy's verdict doesn't count")
        #expect(try isResumed(other))
    }

    // MARK: Revocation

    /// The host must present its certificate again, under every policy.
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func aRevocationEndsTheSessionsOfTheHostAndOfNoOther(version: TLSVersion) throws {
        let peer = try origin(version...version)
        let bench = try Workbench()
        func isResumed(_ target: UpstreamTarget) throws -> Bool {
            let connection = try bench.connect(to: target).get()
            defer { connection.close() }
            #expect(bench.receive(on: connection) == "hello")
            return connection.stream.withTLS { $0.isResumed } == true
        }
        let policies = [SecurityPolicy(), try pinned("sha256/" + authority.identity.chain[0].spkiSHA256.base64)]
        let targets = try policies.map { try bench.target(port: peer.port, policy: $0) }
        let other = try bench.target(port: peer.port, host: "localhost")
        for target in targets + [other] { #expect(try !isResumed(target)) }

        let revoking = SecurityPolicy(requirements: TrustRequirements(revocationLists: try authority.revokingLists()))
        guard case .refused(let verdict, _) = try bench.failure(to: bench.target(port: peer.port, policy: revoking)),
            verdict.refusal?.isRevocation == true
        else { throw Unexpected(text: "not revoked") }
        for target in targets { #expect(try !isResumed(target), "the session was kept") }
        #expect(try isResumed(other))

        // Any other refusal keeps the sessions.
        _ = try bench.failure(to: bench.target(port: peer.port, policy: pinned()))
        for target in targets { #expect(try isResumed(target)) }
    }
}

/// A name server on a thread that answers that a name doesn't exist, or never answers.
final class NameServer: Sendable {
    let address: String
    private let descriptor: CInt

    init(answers: Bool) throws {
        let descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue), 0)
        self.descriptor = descriptor
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        try #require(any.withSockaddr { bind(descriptor, $0, $1) } == 0)
        address = try #require(Socket.localAddress(descriptor)).description
        guard answers else { return }
        Thread.detachNewThread {
            var bytes = [UInt8](repeating: 0, count: 1500)
            while true {
                var sender = sockaddr_in()
                var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                withUnsafeMutablePointer(to: &sender) { sender in
                    sender.withMemoryRebound(to: sockaddr.self, capacity: 1) { sender in
                        let count = recvfrom(descriptor, &bytes, bytes.count, 0, sender, &length)
                        guard count > 12 else { return }
                        (bytes[2], bytes[3]) = (0x81, 0x83)
                        sendto(descriptor, bytes, count, 0, sender, length)
                    }
                }
                if bytes[2] == 0 { break }
                bytes[2] = 0
            }
            close(descriptor)
        }
    }

    deinit { shutdown(descriptor, CInt(SHUT_RDWR)) }
}

/// A listener with a full queue: connecting to it goes unanswered.
private final class FullListener {
    let port: UInt16
    private var descriptors: [CInt] = []

    init() throws {
        let any = SocketAddress(ip: try #require(IPAddress("127.0.0.1")), port: 0)
        let listener = try Socket.listen(on: any, backlog: 0, reusePort: false).release()
        let address = try #require(Socket.localAddress(listener))
        port = address.port
        descriptors.append(listener)
        for _ in 0..<4 { descriptors.append(try Socket.beginConnect(to: address).release()) }
    }

    deinit { for descriptor in descriptors { close(descriptor) } }
}
