package import PinproxyConfiguration
package import PinproxyEventLoop
package import PinproxySecurity
package import PinproxySession
package import PinproxyTLS
import PinproxyTransport

/// Does once, from the command line, what the proxy does for a host: look-up, address checks, connection (or the
/// parent's CONNECT), TLS handshake and verdict. Nothing else is sent. The proxy's own ``UpstreamConnector`` makes the
/// connections. It runs on the calling thread until all is done; steps have the proxy's deadlines.
package struct Rehearsal {
    /// The requirements of a connection.
    package enum Act: Sendable {
        /// - Parameter tls: settings that differ from the defaults.
        case secure(SecurityPolicy, ClientTLS?, [HTTPProtocol])
        /// An unread connection.
        case tunnel
        /// A tunnel, after the policy has accepted a probe.
        case verifiedTunnel(SecurityPolicy)
    }

    package struct Connection: Sendable {
        /// `192.0.2.1:443`; the parent proxy's, if there is one.
        package let address: String
        /// The resolver's answer for the host, or for the parent proxy.
        package let answer: AddressAnswer?
        /// Nil in a tunnel that isn't verified.
        package let verdict: Verdict?
        /// E.g. `TLS 1.3`; nil in a tunnel that isn't verified.
        package let version: TLSVersion?
        /// OpenSSL's name of the cipher suite; nil in a tunnel.
        package let cipher: String?
        /// The TLS registry's name of the key exchange's group, e.g. `X25519MLKEM768`; nil in a tunnel.
        package let group: String?
        /// Nil: the origin asked for no client certificate.
        package var certificateRequest: ClientCertificateRequest?
        /// Nil in a tunnel.
        package var http: HTTPChoice?
    }

    /// The version of HTTP that an origin chose by ALPN.
    package struct HTTPChoice: Sendable {
        package let offered: [HTTPProtocol]
        /// Nil: the origin chose none, and gets HTTP/1.1.
        package let chosen: HTTPProtocol?
        /// Whether it takes WebSockets over HTTP/2 (RFC 8441); nil: unknown, or another version was chosen.
        package let takesExtendedConnect: Bool?
    }

    package typealias Ending = Result<Connection, UpstreamFailure>

    /// Without the local authority among the anchors.
    package let upstream: UpstreamSettings
    private let timeouts: Timeouts
    private let listeners: OwnListeners
    private let unixTime: @Sendable () -> UnixTime
    private static let atOnce = 16

    /// - Parameter ownAuthority: the local authority's certificate, which vouches for no origin.
    package init(
        upstream: UpstreamSettings, timeouts: Timeouts, ownAuthority: Certificate?, listen: [ListenAddress] = [],
        unixTime: @escaping @Sendable () -> UnixTime
    ) {
        var upstream = upstream
        if let ownAuthority { upstream.anchors = upstream.anchors.excluding(ownAuthority) }
        self.upstream = upstream
        self.timeouts = timeouts
        listeners = OwnListeners(listen.compactMap(SocketAddress.init))
        self.unixTime = unixTime
    }

    package func run(_ host: Host, _ act: Act) throws -> Ending {
        try Run(self, [(host, act)]).endings()[0] ?? .failure(.local("the rehearsal ended too early"))
    }

    /// Makes several connections, some at a time. Nil: there was no time for it.
    package func run(_ parts: [(host: Host, act: Act)], within limit: Duration) throws -> [Ending?] {
        try Run(self, parts, within: limit).endings()
    }

    fileprivate func target(_ host: Host, _ act: Act) -> UpstreamTarget {
        switch act {
        case .tunnel: UpstreamTarget(host: host.name, port: host.port, layer: .tunnel, upstream: upstream)
        case .verifiedTunnel(let policy):
            UpstreamTarget(
                host: host.name, port: host.port,
                layer: .verifiedTunnel(policy, upstream.anchors, host.serverName), upstream: upstream)
        case .secure(let policy, let tls, let protocols):
            UpstreamTarget(
                host: host.name, port: host.port, layer: .tls(policy, upstream.anchors, host.serverName),
                upstream: upstream, tls: tls, protocols: protocols)
        }
    }

    private final class Run {
        private let rehearsal: Rehearsal
        private let parts: [(host: Host, act: Act)]
        private let loop: EventLoop
        private let connector: UpstreamConnector
        private var attempts: [Int: UpstreamAttempt] = [:]
        private var probes: [Int: UpstreamProbe] = [:]
        private var waits: [Int: CertificateAnswer] = [:]
        /// HTTP/2 connections that await SETTINGS.
        private var settling: [Int: (HTTP2Upstream, Deadline)] = [:]
        private var results: [Int: Ending] = [:]
        private var begun = 0
        private let limit: Duration?
        private lazy var deadline = Deadline(loop: loop, owner: self) { $0.loop.stop() }

        init(_ rehearsal: Rehearsal, _ parts: [(host: Host, act: Act)], within limit: Duration? = nil) throws {
            self.rehearsal = rehearsal
            self.parts = parts
            self.limit = limit
            loop = try EventLoop()
            connector = UpstreamConnector(
                loop: loop, resolver: try Resolver(loop: loop, cache: ResolverCache()), slabs: SlabPool(),
                pool: UpstreamPool(), sessions: UpstreamSessionCache(),
                listeners: rehearsal.listeners, tls: try TLSClientContext(options: .init(for: TrustRequirements())),
                unixTime: rehearsal.unixTime)
        }

        func endings() -> [Ending?] {
            guard !parts.isEmpty else { return [] }
            if let limit { deadline.set(afterNanoseconds: limit.nanoseconds) }
            while begun < parts.count, begun < Rehearsal.atOnce { beginNext() }
            loop.run()
            deadline.clear()
            for attempt in attempts.values { attempt.cancel() }
            for probe in probes.values { probe.cancel() }
            waits = [:]
            for (connection, _) in settling.values { connection.close() }
            settling = [:]
            return parts.indices.map { results[$0] }
        }

        private func beginNext() {
            let index = begun
            begun += 1
            let target = rehearsal.target(parts[index].host, parts[index].act)
            attempts[index] = connector.connect(to: target, timeouts: rehearsal.timeouts) { [weak self] result in
                guard let self else { return }
                attempts[index] = nil
                switch (result, target.layer) {
                case (.success(let connection), .verifiedTunnel): probe(index, target, over: connection)
                case (.success(let connection), _): listen(index, to: connection)
                case (.failure(let failure), _): end(index, .failure(failure))
                }
            }
        }

        private func probe(_ index: Int, _ target: UpstreamTarget, over connection: UpstreamConnection) {
            let address = connection.address
            probes[index] = connector.probe(
                target, at: address, over: connection, applicationProtocols: nil, timeouts: rehearsal.timeouts
            ) { [weak self] outcome in
                guard let self else { return }
                probes[index] = nil
                switch outcome {
                case .found(let finding, _):
                    let found = Connection(
                        address: "\(address)", answer: connection.answer, verdict: finding.verdict,
                        version: finding.version, cipher: nil,
                        group: nil)
                    end(index, .success(found))
                case .failed(let failure): end(index, .failure(failure))
                }
            }
        }

        /// Waits for the origin's verdict on a client certificate, if it hasn't given it yet.
        private func listen(_ index: Int, to connection: UpstreamConnection) {
            let wait = CertificateAnswer(connection, loop: loop, unixTime: rehearsal.unixTime) { [weak self] refusal in
                guard let self else { return }
                waits[index] = nil
                if let refusal {
                    connection.close()
                    end(index, .failure(.clientCertificate(refusal)))
                } else {
                    settle(index, connection)
                }
            }
            waits[index] = wait
            wait.start()
        }

        /// Waits for the settings of HTTP/2, which say whether WebSockets are taken, if they can still be read.
        private func settle(_ index: Int, _ connection: UpstreamConnection) {
            let protocols = rehearsal.target(parts[index].host, parts[index].act).protocols
            let isRead = connection.stream.withTLS { $0.certificateRequest == nil } ?? false
            guard isRead, let shared = connection as? HTTP2Upstream, !shared.isSettled, !shared.isOver else {
                return end(index, .success(Connection(connection, offered: protocols)))
            }
            let deadline = Deadline(loop: loop)
            deadline.bind(to: self) { $0.settled(index, protocols) }
            settling[index] = (shared, deadline)
            deadline.set(afterNanoseconds: CertificateAnswer.patience)
            // It closes the connection, which is calling.
            shared.whenSettled { [weak self] in self?.loop.afterThisTurn { self?.settled(index, protocols) } }
        }

        private func settled(_ index: Int, _ protocols: [HTTPProtocol]) {
            guard let (connection, deadline) = settling.removeValue(forKey: index) else { return }
            deadline.clear()
            end(index, .success(Connection(connection, offered: protocols)))
        }

        private func end(_ index: Int, _ ending: Ending) {
            results[index] = ending
            if begun < parts.count { beginNext() } else if results.count == parts.count { loop.stop() }
        }
    }
}

extension Rehearsal.Connection {
    /// Takes note of a connection and closes it.
    fileprivate init(_ connection: UpstreamConnection, offered: [HTTPProtocol]) {
        address = "\(connection.address)"
        answer = connection.answer
        verdict = connection.verdict
        version = connection.stream.withTLS { $0.version }
        cipher = connection.stream.withTLS { $0.cipherName }
        group = connection.stream.withTLS { $0.groupName } ?? nil
        certificateRequest = connection.stream.withTLS { $0.certificateRequest } ?? nil
        if connection.stream.isSecure {
            let chosen = (connection.stream.withTLS { $0.alpn } ?? nil).flatMap(HTTPProtocol.init)
            http = Rehearsal.HTTPChoice(
                offered: offered, chosen: chosen,
                takesExtendedConnect: (connection as? HTTP2Upstream).flatMap { $0.isSettled ? $0.takesUpgrades : nil })
        }
        connection.close()
    }
}

extension Rehearsal {
    /// The origin's verdict on a client certificate that it asked for. TLS 1.2 settles it in the handshake. In TLS 1.3
    /// it follows the client's handshake as an alert or a session ticket. An origin that sends nothing has not refused.
    final class CertificateAnswer: ByteStreamOwner {
        /// A content origin may send nothing.
        static let patience: UInt64 = 2_000_000_000

        private let connection: UpstreamConnection
        private let loop: EventLoop
        private let unixTime: @Sendable () -> UnixTime
        private var completion: ((ClientCertificateRefusal?) -> Void)?
        private var received: ByteBuffer
        private lazy var deadline = Deadline(loop: loop, owner: self) { $0.end(nil) }

        /// - Parameter completion: called once on the loop, perhaps within ``start()``; nil: not refused.
        init(
            _ connection: UpstreamConnection, loop: EventLoop, unixTime: @escaping @Sendable () -> UnixTime,
            completion: @escaping (ClientCertificateRefusal?) -> Void
        ) {
            self.connection = connection
            self.loop = loop
            self.unixTime = unixTime
            self.completion = completion
            received = ByteBuffer(slabs: SlabPool())
        }

        func start() {
            let awaits = connection.stream.withTLS { $0.certificateRequest != nil && $0.version == .tls13 }
            guard awaits == true else { return end(nil) }
            connection.stream.owner = self
            connection.stream.wantsRead = true
            deadline.set(afterNanoseconds: Self.patience)
        }

        func streamIsReadable(_ stream: ByteStream) {
            // A ticket reads as nothing.
            _ = stream.read(into: &received)
            end(stream.certificateRefusal(at: unixTime()))
        }

        private func end(_ refusal: ClientCertificateRefusal?) {
            guard let completion else { return }
            self.completion = nil
            deadline.clear()
            connection.stream.wantsRead = false
            completion(refusal)
        }
    }
}
