package import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyReachability
import PinproxySecurity
import PinproxyTLS
package import PinproxyTransport

/// Carries out the ``UpstreamPlan`` of one connection: look up, dial, tunnel, TLS handshake, verify, match pins.
package final class UpstreamAttempt: ByteStreamOwner {
    private let connector: UpstreamConnector
    private let target: UpstreamTarget
    private let fixedAddress: SocketAddress?
    private let timeouts: Timeouts
    private let dscp: UInt8
    private var completion: ((Result<UpstreamConnection, UpstreamFailure>) -> Void)?
    private var plan: UpstreamPlan

    private lazy var deadline = Deadline(loop: connector.loop, owner: self) { $0.happened(.deadline) }
    private var resolution: Resolution?
    /// The resolver's last answer.
    private var answer: AddressAnswer?
    private var dialer: Dialer?
    private var stream: ByteStream?
    private var address: SocketAddress?
    private var parentReply: ParentReply?
    private var destination: (resolution: Resolution?, deadline: Deadline)?
    /// Bytes after the parent proxy's answer, from an origin that speaks first.
    private var received: ByteBuffer
    private var metrics = ConnectMetrics()
    private var stepBegan = MonotonicTime.now()

    /// The result of the verification during the handshake.
    private final class Judgement {
        var verdict: Verdict?
        var resumed: UpstreamSessionCache.Entry?
    }
    private let judgement = Judgement()

    init(
        connector: UpstreamConnector, target: UpstreamTarget, address: SocketAddress?, timeouts: Timeouts, dscp: UInt8,
        completion: @escaping (Result<UpstreamConnection, UpstreamFailure>) -> Void
    ) {
        self.connector = connector
        self.target = target
        fixedAddress = address
        plan = UpstreamPlan(for: target, mayBeOwn: address == nil && connector.ownOrigin != nil)
        received = ByteBuffer(slabs: connector.slabs)
        self.timeouts = timeouts
        self.dscp = dscp
        self.completion = completion
    }

    func start() { happened(.begun) }

    package func cancel() {
        happened(.cancelled)
        completion = nil
        release()
    }

    private func happened(_ event: UpstreamPlan.Event) {
        switch plan.received(event) {
        case .none: break
        case .askOwnOrigin: askOwnOrigin()
        case .survey: survey()
        case .lookUp(let patience, let destinationToo): lookUp(patience, destinationToo: destinationToo)
        case .dial(let addresses, let moreToCome, let anew): dial(addresses, moreToCome: moreToCome, anew: anew)
        case .dialToo(let addresses, let moreToCome): dialer?.add(addresses, moreToCome: moreToCome)
        case .makeRoom: happened(.roomMade(connector.pool.makeRoom()))
        case .askParent: askParent()
        case .secure: secure()
        case .finish(let verdict, let scope): finish(verdict, scope)
        case .fail(let failure): fail(failure)
        }
    }

    // MARK: Name and address

    private func askOwnOrigin() {
        do throws(OwnOriginError) {
            guard let socket = try connector.ownOrigin?.connection(to: target.host) else { return happened(.notOwn) }
            // It has no address; the log shows this one.
            address = IPAddress("127.0.0.1").map { SocketAddress(ip: $0, port: target.port) }
            connected(socket, .inside)
        } catch {
            happened(.failed(error.cause))
        }
    }

    private func survey() {
        happened(
            .surveyed(
                isolation: connector.network.outlook.obstacle(to: target.dialledHost),
                looksUpDestination: target.key.parent != nil
                    && (target.key.addresses.mayObject || connector.listeners.use(port: target.port))))
    }

    /// Without a network: a name server on this machine may know the name.
    private static let isolatedLookUpNanoseconds: UInt64 = 500_000_000
    private static let destinationNanoseconds: UInt64 = 1_000_000_000

    private func lookUp(_ patience: UpstreamPlan.Patience, destinationToo: Bool) {
        let limit = patience == .connect ? UInt64.max : Self.isolatedLookUpNanoseconds
        deadline.set(afterNanoseconds: min(timeouts.connect.nanoseconds, limit))
        if destinationToo { lookUpDestination() }
        guard !plan.hasEnded else { return }
        if let fixedAddress {
            let given = AddressAnswer([fixedAddress.ip], from: NameSource(.given))
            return found(given, port: fixedAddress.port, moreToCome: false)
        }
        let port = target.key.parent?.port ?? target.port
        resolution = connector.resolver.answer(to: target.dialledHost) { [weak self] answer in
            self?.found(answer, port: port, moreToCome: true)
        } completion: { [weak self] result in
            switch result {
            case .success(let answer): self?.found(answer, port: port, moreToCome: false)
            case .failure(let error): self?.happened(.unresolved(error))
            }
        }
    }

    private func found(_ answer: AddressAnswer, port: UInt16, moreToCome: Bool) {
        self.answer = answer
        let candidates = answer.addresses.map { ip in
            let address = SocketAddress(ip: ip, port: port)
            return UpstreamPlan.Candidate(address: address, obstacle: obstacle(to: address))
        }
        happened(.found(candidates, moreToCome: moreToCome))
    }

    /// Why the address is not dialled. The parent proxy's may be any but the proxy's own.
    private func obstacle(to address: SocketAddress) -> UpstreamPlan.Obstacle? {
        let isParent = target.key.parent != nil
        if let isolation = plan.isolation, !Socket.isLocal(address.ip) { return .noNetwork(isolation) }
        if connector.listeners.contains(address) { return .itself(address, asParent: isParent) }
        return isParent ? nil : objection(to: address.ip)
    }

    private func objection(to ip: IPAddress) -> UpstreamPlan.Obstacle? {
        if let objection = target.key.addresses.objection(to: ip) { return .blocked(ip, objection) }
        return target.reach.allows(ip.scope) ? nil : .blocked(ip, .insideFromOutside)
    }

    private func dial(_ addresses: [SocketAddress], moreToCome: Bool, anew: Bool) {
        metrics.nameLookup = lap()
        if anew { deadline.set(afterNanoseconds: timeouts.connect.nanoseconds) }
        let dialer = Dialer(
            loop: connector.loop, addresses: addresses, moreToCome: moreToCome, dscp: dscp
        ) { [weak self] result in
            guard let self else { return }
            self.dialer = nil
            resolution?.cancel()
            resolution = nil
            switch result {
            case .success(let socket):
                guard let descriptor = socket.take() else { return }
                address = socket.address
                connected(descriptor, socket.address.ip.scope)
            case .failure(let error): happened(.unreachable(error))
            }
        }
        self.dialer = dialer
        dialer.start()
    }

    private func connected(_ socket: consuming Descriptor, _ scope: AddressScope) {
        let stream = ByteStream(loop: connector.loop, descriptor: socket)
        self.stream = stream
        stream.owner = self
        happened(.connected(scope))
    }

    // MARK: The parent proxy

    private func lookUpDestination() {
        let deadline = Deadline(loop: connector.loop, owner: self) { $0.destinationFound([]) }
        deadline.set(afterNanoseconds: Self.destinationNanoseconds)
        destination = (nil, deadline)
        let resolution = connector.resolver.resolve(target.host) { [weak self] result in
            self?.destinationFound((try? result.get()) ?? [])
        }
        // Nil if the answer came at once.
        destination?.resolution = resolution
    }

    /// - Parameter addresses: empty: unknown here.
    private func destinationFound(_ addresses: [IPAddress]) {
        destination?.resolution?.cancel()
        destination = nil
        let candidates = addresses.map { ip in
            let address = SocketAddress(ip: ip, port: target.port)
            let isOurs = connector.listeners.contains(address)
            return UpstreamPlan.Candidate(
                address: address, obstacle: isOurs ? .itself(address, asParent: false) : objection(to: ip))
        }
        happened(.destinationFound(candidates))
    }

    private func askParent() {
        guard let stream, let parent = target.key.parent else { return }
        let reply = ParentReply(parent: parent, target: target, slabs: connector.slabs)
        parentReply = reply
        stream.wantsRead = true
        if let problem = reply.ask(over: stream) { happened(.parentFailed(problem)) }
    }

    package func streamIsReadable(_ stream: ByteStream) {
        guard let parentReply else { return }
        switch parentReply.read(from: stream) {
        case .incomplete: break
        case .established:
            self.parentReply = nil
            stream.wantsRead = false
            received = parentReply.takeRest()
            happened(.parentAgreed(isGreeted: !received.isEmpty))
        case .refused(let status): happened(.parentRefused(status: status))
        case .failed(let problem): happened(.parentFailed(problem))
        }
    }

    package func streamIsWritable(_ stream: ByteStream) {
        if let problem = parentReply?.ask(over: stream) { happened(.parentFailed(problem)) }
    }

    // MARK: TLS

    private func secure() {
        guard let stream, case .tls(let policy, let anchors, let name) = target.layer else { return }
        metrics.connect = lap()
        deadline.set(afterNanoseconds: timeouts.tlsHandshake.nanoseconds)
        let now = connector.unixTime()
        judgement.resumed = connector.sessions.take(for: target.key, at: now)
        let judgement = judgement
        let connector = connector
        let key = target.key
        do {
            let connection = try stream.withDescriptor { descriptor in
                try TLSConnection(
                    client: target.tls?.context ?? connector.tls, descriptor: descriptor, serverName: name,
                    applicationProtocols: target.protocols == HTTPProtocol.usual
                        ? nil : target.protocols.map(\.rawValue),
                    session: judgement.resumed?.session,
                    verify: { presented in
                        let verdict = policy.evaluate(presented, host: name, anchors: anchors, at: now)
                        judgement.verdict = verdict
                        return verdict.peerVerdict
                    },
                    confirm: { evidence in
                        guard let verdict = judgement.verdict else { return .reject(x509Code: 0) }
                        let confirmed = policy.confirm(verdict, with: evidence, at: now)
                        judgement.verdict = confirmed
                        return confirmed.peerVerdict
                    },
                    onSession: { session in
                        guard let verdict = judgement.verdict, verdict.isAccepted else { return }
                        connector.sessions.store(
                            .init(session: session, verdict: verdict, validUntil: verdict.validUntil), for: key)
                    })
            }
            stream.secure(connection)
        } catch {
            happened(.failed("\(error)"))
        }
    }

    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        if case .failure(let error) = result {
            let refusal = stream.certificateRefusal(at: connector.unixTime())
            return happened(.unsecured(error, judgement.verdict, refusal))
        }
        // A resumed session keeps the verdict of its first handshake.
        if stream.withTLS({ $0.isResumed }) == true, let resumed = judgement.resumed {
            judgement.verdict = resumed.verdict
            if !resumed.session.isSingleUse { connector.sessions.store(resumed, for: target.key) }
        }
        // The handshake may have delayed the timer.
        happened(.secured(judgement.verdict, isOverdue: deadline.isOverdue))
    }

    // MARK: The end

    private func finish(_ verdict: Verdict?, _ scope: AddressScope?) {
        guard let stream, let address, let completion else { return }
        if verdict == nil {
            metrics.connect = lap()
        } else {
            metrics.tls = lap()
            metrics.group = stream.withTLS { $0.groupName } ?? nil
        }
        let isPlain = target.key.layer == .plain
        self.completion = nil
        self.stream = nil
        release()
        let made = Establishment(
            loop: connector.loop, stream: stream, origin: connector.pool.origin(for: target.key), verdict: verdict,
            validUntil: verdict?.validUntil ?? .max, metrics: metrics, address: address, answer: answer, scope: scope,
            dscp: dscp)
        completion(connection(made, isPlain: isPlain))
    }

    private func connection(_ made: Establishment, isPlain: Bool) -> Result<UpstreamConnection, UpstreamFailure> {
        if case .tls = target.layer, target.protocols.contains(.http2) {
            let choice = chosenProtocol(on: made.stream)
            made.origin.chosenProtocol = choice
            if choice == .http2 {
                do throws(HTTP2Unavailable) {
                    return .success(
                        try HTTP2Upstream(made, slabs: connector.slabs, timeouts: timeouts, ping: target.ping))
                } catch {
                    return .failure(.local("there is no memory for HTTP/2"))
                }
            }
            guard target.protocols.contains(.http1) else { return .failure(.otherProtocol(offered: target.protocols)) }
        }
        return .success(
            HTTP1Upstream(
                made, parentHop: isPlain ? target.key.parent.map(ParentHop.init) : nil, received: received.take()))
    }

    private func chosenProtocol(on stream: ByteStream) -> HTTPProtocol {
        (stream.withTLS { $0.alpn } ?? nil).flatMap(HTTPProtocol.init) ?? .http1
    }

    private func fail(_ failure: UpstreamFailure) {
        guard let completion else { return }
        if case .refused(let verdict, _) = failure { connector.forget(target, after: verdict.refusal) }
        let met = failure.met(address.map { OriginContact(target, at: $0, answer, over: stream) })
        self.completion = nil
        release()
        completion(.failure(met.explained(by: connector.network.outlook.cutOff)))
    }

    private func release() {
        deadline.clear()
        resolution?.cancel()
        resolution = nil
        destination?.resolution?.cancel()
        destination = nil
        dialer?.cancel()
        dialer = nil
        stream?.stop()
        stream = nil
        parentReply = nil
    }

    private func lap() -> UInt64 {
        let now = MonotonicTime.now()
        defer { stepBegan = now }
        return now - stepBegan
    }
}

extension UpstreamConnector {
    /// Begins to connect to `target`.
    /// - Parameters:
    ///   - address: the only one to dial; nil: those of the target's host, or of the parent proxy.
    ///   - completion: called once on the loop, after this returns, never after ``UpstreamAttempt/cancel()``.
    package func connect(
        to target: UpstreamTarget, at address: SocketAddress? = nil, timeouts: Timeouts, dscp: UInt8 = 0,
        completion: @escaping (Result<UpstreamConnection, UpstreamFailure>) -> Void
    ) -> UpstreamAttempt {
        let attempt = UpstreamAttempt(
            connector: self, target: target, address: address, timeouts: timeouts, dscp: dscp, completion: completion)
        loop.afterThisTurn { attempt.start() }
        return attempt
    }
}
