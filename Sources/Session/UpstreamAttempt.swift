import EventLoop
import Security
import TLS
package import Transport

/// One way to an origin: look up, dial, ask the parent proxy for a tunnel, shake hands, verify, match
/// the pins. Each step has a deadline; the first failure ends it.
package final class UpstreamAttempt: ByteStreamOwner {
    private let connector: UpstreamConnector
    private let target: UpstreamTarget
    private let fixedAddress: SocketAddress?
    private let timeouts: Timeouts
    private var completion: ((Result<UpstreamConnection, UpstreamFailure>) -> Void)?

    private var step = UpstreamFailure.Step.nameLookup
    private lazy var deadline = Deadline(loop: connector.loop) { [unowned self] in
        fail(.timedOut(step))
    }
    private var resolution: Resolution?
    private var dialer: Dialer?
    private var stream: ByteStream?
    private var address: SocketAddress?
    private var parentReply: ParentReply?
    private var metrics = ConnectMetrics()
    private var stepBegan = MonotonicTime.now()

    /// What the verification of the handshake found; the TLS layer asks for it in between.
    private final class Judgement {
        var verdict: Verdict?
        var resumed: UpstreamSessionCache.Entry?
    }
    private let judgement = Judgement()

    init(
        connector: UpstreamConnector, target: UpstreamTarget, address: SocketAddress?, timeouts: Timeouts,
        completion: @escaping (Result<UpstreamConnection, UpstreamFailure>) -> Void
    ) {
        self.connector = connector
        self.target = target
        fixedAddress = address
        self.timeouts = timeouts
        self.completion = completion
    }

    /// Gives up; the completion is not called any more.
    package func cancel() {
        completion = nil
        release()
    }

    // MARK: Name and address

    func start() {
        guard completion != nil else { return }
        deadline.set(afterNanoseconds: timeouts.connect.nanoseconds)
        if let fixedAddress { return dial([fixedAddress.ip], port: fixedAddress.port) }
        let parent = target.key.parent
        resolution = connector.resolver.resolve(parent?.host ?? target.host) { [weak self] result in
            guard let self else { return }
            resolution = nil
            switch result {
            case .success(let addresses): dial(addresses, port: parent?.port ?? target.port)
            case .failure(let error): fail(.unresolved(error))
            }
        }
    }

    private func dial(_ addresses: [IPAddress], port: UInt16) {
        metrics.nameLookup = lap()
        step = .connect
        var allowed = addresses
        if target.key.parent == nil {
            allowed.removeAll { blockedClass(of: $0) != nil }
            if allowed.isEmpty, let first = addresses.first, let blocked = blockedClass(of: first) {
                return fail(.blocked(first, blocked))
            }
        } else if let literal = IPAddress(target.host), let blocked = blockedClass(of: literal) {
            return fail(.blocked(literal, blocked))
        }
        let dialer = Dialer(
            loop: connector.loop, addresses: allowed.map { SocketAddress(ip: $0, port: port) }
        ) { [weak self] result in
            guard let self else { return }
            self.dialer = nil
            switch result {
            case .success(let socket): connected(socket)
            case .failure(let error): fail(.unreachable(error))
            }
        }
        self.dialer = dialer
        dialer.start()
    }

    private func blockedClass(of address: IPAddress) -> AddressClass? {
        AddressClass.classes(of: address).intersection(target.blockedAddresses).min { $0.rawValue < $1.rawValue }
    }

    private func connected(_ socket: DialedSocket) {
        guard let descriptor = socket.take() else { return }
        address = socket.address
        let stream = ByteStream(loop: connector.loop, descriptor: descriptor)
        self.stream = stream
        stream.owner = self
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
            if let verdict = judgement.verdict, !verdict.isAccepted { return fail(.refused(verdict)) }
            if let refusal = stream.certificateRefusal(at: connector.unixTime()) { return fail(.clientCertificate(refusal)) }
            return fail(.tls(error))
        }
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
                    verdict: verdict, validUntil: verdict?.validUntil ?? .max, metrics: metrics,
                    address: address, slabs: connector.slabs)))
    }

    private func fail(_ failure: UpstreamFailure) {
        guard let completion else { return }
        self.completion = nil
        release()
        completion(.failure(failure))
    }

    private func release() {
        deadline.clear()
        resolution?.cancel()
        resolution = nil
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
