package import EventLoop
import Reachability
import Security
import TLS
package import Transport

/// One way to an origin: look up, dial, ask the parent proxy for a tunnel, TLS handshake, verify, match
/// the pins. Each step has a deadline; the first failure ends it.
package final class UpstreamAttempt: ByteStreamOwner {
    private let connector: UpstreamConnector
    private let target: UpstreamTarget
    private let fixedAddress: SocketAddress?
    private let timeouts: Timeouts
    private let dscp: UInt8
    private var completion: ((Result<UpstreamConnection, UpstreamFailure>) -> Void)?

    private var step = UpstreamFailure.Step.nameLookup
    private lazy var deadline = Deadline(loop: connector.loop, owner: self) { $0.timedOut() }
    /// Why nothing but this machine's own addresses can be dialled; nil: others can.
    private var isolation: UnreachableReason?
    private var resolution: Resolution?
    private var dialer: Dialer?
    private var hasMadeRoom = false
    /// Why the first address that was left out was.
    private var obstacle: UpstreamFailure?
    private var stream: ByteStream?
    private var address: SocketAddress?
    private var parentReply: ParentReply?
    /// The look-up of what the parent proxy is to be asked for, and how long it is waited for.
    private var destination: Resolution?
    private var judging: Deadline?
    /// Where the origin is; nil: not known.
    private var scope: AddressScope?
    /// What an origin that speaks first has said by way of the parent proxy.
    private var received: ByteBuffer
    private var metrics = ConnectMetrics()
    private var stepBegan = MonotonicTime.now()

    /// What the verification of the handshake found; the TLS layer asks for it in between.
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
        received = ByteBuffer(slabs: connector.slabs)
        self.timeouts = timeouts
        self.dscp = dscp
        self.completion = completion
    }

    /// Gives up; the completion is not called any more.
    package func cancel() {
        completion = nil
        release()
    }

    private func timedOut() {
        if let isolation, step == .nameLookup { fail(.noNetwork(isolation)) } else { fail(.timedOut(step)) }
    }

    // MARK: Name and address

    func start() {
        guard completion != nil else { return }
        if beginWithinProcess() { return }
        let parent = target.key.parent
        isolation = connector.network.outlook.obstacle(to: target.dialledHost)
        let patience = timeouts.connect.nanoseconds
        deadline.set(
            afterNanoseconds: isolation == nil ? patience : min(patience, Self.isolatedLookUpNanoseconds))
        if parent != nil, !hasMadeRoom { judgeDestination() }
        guard completion != nil else { return }
        if let fixedAddress { return found([fixedAddress.ip], port: fixedAddress.port, moreToCome: false) }
        let port = parent?.port ?? target.port
        resolution = connector.resolver.resolve(parent?.host ?? target.host) { [weak self] addresses in
            self?.found(addresses, port: port, moreToCome: true)
        } completion: { [weak self] result in
            guard let self, stream == nil else { return }
            resolution = nil
            switch result {
            case .success(let addresses): found(addresses, port: port, moreToCome: false)
            case .failure(.noDescriptors): lacksDescriptor()
            case .failure(let error): fail(.unresolved(error))
            }
        }
    }

    /// - Returns: false if the host is to be dialled.
    private func beginWithinProcess() -> Bool {
        guard case .tls = target.layer, target.key.parent == nil, fixedAddress == nil, let origin = connector.ownOrigin else {
            return false
        }
        do throws(OwnOriginError) {
            guard let socket = try origin.connection(to: target.host) else { return false }
            // There is none: this is what the log says of it.
            address = IPAddress("127.0.0.1").map { SocketAddress(ip: $0, port: target.port) }
            scope = .inside
            let stream = ByteStream(loop: connector.loop, descriptor: socket)
            self.stream = stream
            stream.owner = self
            begin()
        } catch {
            fail(.local(error.cause))
        }
        return true
    }

    /// How long is waited without a network for the name servers: one on this machine may know the name as one of its own.
    private static let isolatedLookUpNanoseconds: UInt64 = 500_000_000

    /// Dials the addresses that may be dialled. Called again when more of them have come.
    private func found(_ addresses: [IPAddress], port: UInt16, moreToCome: Bool) {
        guard completion != nil else { return }
        var allowed: [SocketAddress] = []
        for ip in addresses {
            let address = SocketAddress(ip: ip, port: port)
            if let found = obstacle(to: address) { obstacle = obstacle ?? found } else { allowed.append(address) }
        }
        if let dialer { return dialer.add(allowed, moreToCome: moreToCome) }
        if allowed.isEmpty {
            if moreToCome { return }
            if let obstacle { return fail(obstacle) }
        }
        metrics.nameLookup = lap()
        step = .connect
        if isolation != nil { deadline.set(afterNanoseconds: timeouts.connect.nanoseconds) }
        let dialer = Dialer(
            loop: connector.loop, addresses: allowed, moreToCome: moreToCome, dscp: dscp
        ) { [weak self] result in
            guard let self else { return }
            self.dialer = nil
            resolution?.cancel()
            resolution = nil
            switch result {
            case .success(let socket): connected(socket)
            case .failure(let error) where error.isLackOfDescriptors: lacksDescriptor()
            case .failure(let error):
                // The address that would have answered is the proxy's own: that it was left out is the reason.
                if case .itself? = obstacle, let obstacle { fail(obstacle) } else { fail(.unreachable(error)) }
            }
        }
        self.dialer = dialer
        dialer.start()
    }

    /// What rests is given up before a client is refused; once, since others may be faster.
    private func lacksDescriptor() {
        guard completion != nil, !hasMadeRoom, connector.pool.makeRoom() else { return fail(.noDescriptors) }
        hasMadeRoom = true
        step = .nameLookup
        start()
    }

    /// Why the address is not dialled. The parent proxy's may be any, but for the proxy's own.
    private func obstacle(to address: SocketAddress) -> UpstreamFailure? {
        let isParent = target.key.parent != nil
        if let isolation, !Socket.isLocal(address.ip) { return .noNetwork(isolation) }
        if connector.listeners.contains(address) { return .itself(address, asParent: isParent) }
        return isParent ? nil : objection(to: address.ip)
    }

    private func objection(to ip: IPAddress) -> UpstreamFailure? {
        if let objection = target.key.addresses.objection(to: ip) { return .blocked(ip, objection) }
        return target.reach.allows(ip.scope) ? nil : .blocked(ip, .insideFromOutside)
    }

    // MARK: What the parent proxy is asked for

    /// How long the parent proxy is not asked because the host's addresses aren't known here.
    private static let judgementNanoseconds: UInt64 = 1_000_000_000

    /// The parent proxy looks the host up itself, and would connect to whatever it finds. A host that is known here to
    /// have none but blocked addresses is refused; of one that isn't known here, or not soon, the parent decides.
    ///
    /// Nor may it be led back to this proxy's own listeners, as a parent on the same machine would be. Where a redirect must
    /// not lead inside, one blocked address is enough, since nobody here knows which the parent takes.
    private func judgeDestination() {
        let isLimited = target.reach != .anywhere
        guard isLimited || target.key.addresses.mayObject || connector.listeners.use(port: target.port) else { return }
        let judging = Deadline(loop: connector.loop, owner: self) { $0.destinationJudged([]) }
        judging.set(afterNanoseconds: Self.judgementNanoseconds)
        self.judging = judging
        destination = connector.resolver.resolve(target.host) { [weak self] result in
            self?.destinationJudged((try? result.get()) ?? [])
        }
        if self.judging == nil { destination = nil }
    }

    /// - Parameter addresses: none: they aren't known here.
    private func destinationJudged(_ addresses: [IPAddress]) {
        judging = nil
        destination?.cancel()
        destination = nil
        scope = addresses.scope
        let objections = addresses.compactMap { ip -> UpstreamFailure? in
            let address = SocketAddress(ip: ip, port: target.port)
            return connector.listeners.contains(address) ? .itself(address, asParent: false) : objection(to: ip)
        }
        let isObjectionable = target.reach == .anywhere ? objections.count == addresses.count : true
        if let objection = objections.first, isObjectionable { return fail(objection) }
        guard target.reach.allows(scope) else { return fail(.unknownAddress) }
        if stream != nil { begin() }
    }

    private func connected(_ socket: DialedSocket) {
        guard let descriptor = socket.take() else { return }
        address = socket.address
        if target.key.parent == nil { scope = socket.address.ip.scope }
        let stream = ByteStream(loop: connector.loop, descriptor: descriptor)
        self.stream = stream
        stream.owner = self
        if judging == nil { begin() }
    }

    /// The connection is there, and may be used.
    private func begin() {
        guard let stream else { return }
        if let parent = target.key.parent, !isPlain {
            step = .parent
            let reply = ParentReply(parent: parent, target: target, slabs: connector.slabs)
            parentReply = reply
            stream.wantsRead = true
            if let problem = reply.ask(over: stream) { fail(.parentFailed(problem)) }
        } else {
            metrics.connect = lap()
            beginTLS()
        }
    }

    private var isPlain: Bool {
        if case .plain = target.layer { true } else { false }
    }

    // MARK: TLS

    private func beginTLS() {
        guard let stream else { return }
        guard case .tls(let policy, let anchors, let name) = target.layer else { return finish(verdict: nil) }
        step = .tls
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
            fail(.local("\(error)"))
        }
    }

    package func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        if case .failure(let error) = result {
            if let verdict = judgement.verdict, !verdict.isAccepted {
                connector.forget(target, after: verdict.refusal)
                return fail(.refused(verdict))
            }
            if let refusal = stream.certificateRefusal(at: connector.unixTime()) { return fail(.clientCertificate(refusal)) }
            return fail(.tls(error))
        }
        // The handshake itself may have kept the timer waiting.
        if deadline.isOverdue { return fail(.timedOut(.tls)) }
        metrics.tls = lap()
        // A resumed session carries the verdict under which it was made; a full handshake without
        // a verdict can't happen, and would be no reason to go on.
        if stream.withTLS({ $0.isResumed }) == true, let resumed = judgement.resumed {
            judgement.verdict = resumed.verdict
            if !resumed.session.isSingleUse { connector.sessions.store(resumed, for: target.key) }
        }
        guard let verdict = judgement.verdict, verdict.isAccepted else {
            return fail(.local("the handshake ended without a verdict"))
        }
        finish(verdict: verdict)
    }

    package func streamIsReadable(_ stream: ByteStream) {
        guard let parentReply else { return }
        switch parentReply.read(from: stream) {
        case .incomplete: break
        case .established:
            self.parentReply = nil
            metrics.connect = lap()
            stream.wantsRead = false
            received = parentReply.takeRest()
            // Under TLS the client speaks first, and that is us.
            guard received.isEmpty || target.key.layer == .tunnel else {
                return fail(.parentFailed("it sent bytes that no one asked for"))
            }
            beginTLS()
        case .refused(let status): fail(.parentRefused(status: status))
        case .failed(let problem): fail(.parentFailed(problem))
        }
    }

    package func streamIsWritable(_ stream: ByteStream) {
        if let problem = parentReply?.ask(over: stream) { fail(.parentFailed(problem)) }
    }

    // MARK: The end

    private func finish(verdict: Verdict?) {
        guard let stream, let address, let completion else { return }
        self.completion = nil
        self.stream = nil
        release()
        completion(
            .success(
                UpstreamConnection(
                    loop: connector.loop, stream: stream, origin: connector.pool.origin(for: target.key),
                    verdict: verdict, validUntil: verdict?.validUntil ?? .max, metrics: metrics, address: address, scope: scope,
                    parentHop: isPlain ? target.key.parent.map(ParentHop.init) : nil, dscp: dscp, received: received.take())))
    }

    private func fail(_ failure: UpstreamFailure) {
        guard let completion else { return }
        self.completion = nil
        release()
        completion(.failure(explained(failure)))
    }

    /// While the internet can't be reached that is the reason, and not what it makes fail.
    private func explained(_ failure: UpstreamFailure) -> UpstreamFailure {
        guard let reason = isolation ?? connector.network.outlook.cutOff else { return failure }
        switch failure {
        case .unresolved(.timedOut), .unresolved(.serverFailure), .timedOut(.nameLookup): return .noNetwork(reason)
        case .unreachable(let error) where error.isLackOfRoutes: return .noNetwork(reason)
        default: return failure
        }
    }

    private func release() {
        deadline.clear()
        resolution?.cancel()
        resolution = nil
        destination?.cancel()
        destination = nil
        judging = nil
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
    ///   - address: the only one to be dialled; nil: those of the target's host, or of the parent proxy.
    ///   - dscp: what its packets are marked with, those of the handshakes too.
    ///   - completion: called once on the loop, never before this returns, and not after
    ///     ``UpstreamAttempt/cancel()``.
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
