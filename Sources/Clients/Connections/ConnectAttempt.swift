import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySession
import PinproxyTransport

/// The upstream connection for a CONNECT: an idle one of the same policy, or a new one; for a verified tunnel, one to
/// an origin that a probe has accepted. A reload may overtake it. Then one more is made by the new configuration, and
/// no third: reloads can't make one CONNECT dial its origin again and again.
final class ConnectAttempt {
    /// As the client wrote it.
    private let asked: Authority
    let route: Route
    let isForGRPC: Bool
    private let worker: WorkerContext
    /// A reload overtook the first.
    private let isSecond: Bool
    private var completion: ((Result<UpstreamConnection, UpstreamFailure>) -> Void)?
    /// The client, until the end.
    private var client: ClientConnection?
    private var attempt: (any ConnectionTicket)?
    private var probe: UpstreamProbe?
    /// The origin's connection, while the signer is asked for the client's certificate.
    private var reached: UpstreamConnection?
    private var questions = 0
    /// Why the signer gave no certificate.
    private(set) var unsigned: SignerFailure?

    /// - Parameter overtaken: the previous attempt, which a reload overtook; nil is returned if that was the second.
    init?(
        to asked: Authority, _ route: Route, worker: WorkerContext, isForGRPC: Bool = false,
        inPlaceOf overtaken: ConnectAttempt? = nil
    ) {
        if let overtaken, overtaken.isSecond { return nil }
        self.asked = asked
        self.route = route
        self.worker = worker
        self.isForGRPC = isForGRPC
        isSecond = overtaken != nil
    }

    init(_ route: Route, after other: ConnectAttempt) {
        asked = other.asked
        self.route = route
        worker = other.worker
        isForGRPC = other.isForGRPC
        isSecond = other.isSecond
    }

    /// - Parameter completion: called once, on the loop, perhaps before this returns; never after ``cancel()``.
    func start(
        for client: ClientConnection, completion: @escaping (Result<UpstreamConnection, UpstreamFailure>) -> Void
    ) {
        self.completion = completion
        self.client = client
        if let rules = rulesForAll,
            let refusal = worker.session.connector.network.outlook.refusal(by: rules, to: route.target)
        {
            return end(.failure(refusal))
        }
        guard case .tls = route.target.layer else { return dial() }
        let now = worker.unixTime()
        if let shared = route.origin.connectionAtHand(at: now) { return end(.success(shared)) }
        if let idle = route.origin.takeIdle(at: now) { return end(.success(idle)) }
        attempt = worker.session.connector.obtain(to: route.target, timeouts: worker.snapshot.timeouts, dscp: dscp) {
            [weak self] result, isFirst in
            guard let self else { return }
            attempt = nil
            guard isFirst else { return end(result) }
            report(result) { $0.end(result) }
        }
    }

    /// The rules of a tunnel, or of all requests if they agree about cellular links; nil: each request is checked.
    private var rulesForAll: ExchangeRules? {
        guard let rules = route.rules else { return nil }
        return switch route.target.layer {
        case .tunnel, .verifiedTunnel: rules.rules(.none)
        case .plain, .tls: rules.mayAllowWWAN ? nil : rules.rules(.none)
        }
    }

    /// The DSCP of the rules for all requests: none is known yet.
    private var dscp: UInt8 { route.rules?.rules(.none).session.serviceType.dscp ?? 0 }

    func cancel() {
        completion = nil
        client = nil
        attempt?.cancel()
        attempt = nil
        probe?.cancel()
        probe = nil
        reached.take()?.letGo()
    }

    /// - Parameter address: accepted by a probe; nil: any of the host's.
    private func dial(at address: SocketAddress? = nil) {
        attempt = worker.session.connector.connect(
            to: route.target, at: address, timeouts: worker.snapshot.timeouts, dscp: dscp
        ) { [weak self] result in
            guard let self else { return }
            attempt = nil
            report(result) { attempt in
                if case .success(let connection) = result, case .verifiedTunnel = attempt.route.target.layer,
                    address == nil
                {
                    return attempt.probe(over: connection)
                }
                attempt.end(result)
            }
        }
    }

    /// Reports a connection, or its failure. Where the failure makes evidence, which names the client's program, its
    /// process is found first: the answer may end it. Nobody waits for a search otherwise.
    private func report(
        _ result: Result<UpstreamConnection, UpstreamFailure>, then next: @escaping (ConnectAttempt) -> Void
    ) {
        guard let client else { return }
        guard case .failure(let failure) = result, failure.isReported, !route.isTrial else {
            worker.report(result, of: route, for: Requester(client.record))
            return next(self)
        }
        // The worker reports it even if the client leaves meanwhile.
        worker.identify(client) { [weak self, route] worker, requester in
            worker.report(result, of: route, for: requester)
            if let self, completion != nil { next(self) }
        }
    }

    /// Judges the origin over the tunnel's connection, unless it was judged a moment ago; the tunnel then gets another
    /// one to the same address. One after the other, for origins that serve few connections at a time.
    private func probe(over upstream: UpstreamConnection) {
        probe = worker.session.connector.probe(
            route.target, at: upstream.address, over: upstream, applicationProtocols: nil,
            timeouts: worker.snapshot.timeouts
        ) { [weak self] outcome in
            guard let self else { return }
            probe = nil
            guard let client else { return }
            switch outcome {
            case .found(_, isFresh: false): end(.success(upstream))
            case .found(_, isFresh: true):
                worker.report(outcome, of: route, for: Requester(client.record))
                dial(at: upstream.address)
            case .failed(let failure):
                guard failure.isReported else {
                    worker.report(outcome, of: route, for: Requester(client.record))
                    return end(.failure(failure))
                }
                worker.identify(client) { [weak self, route] worker, requester in
                    worker.report(outcome, of: route, for: requester)
                    self?.end(.failure(failure))
                }
            }
        }
    }

    private func end(_ result: Result<UpstreamConnection, UpstreamFailure>) {
        guard let completion, !asksSigner(after: result) else { return }
        self.completion = nil
        client = nil
        completion(result)
    }

    // MARK: The client's certificate

    /// A reload may replace the authority while the signer answers. A second question follows.
    private static let mostQuestions = 2

    /// Asks once the origin is known: a client can't use up what the signer may issue with names that lead nowhere.
    private func asksSigner(after result: Result<UpstreamConnection, UpstreamFailure>) -> Bool {
        guard let signer = worker.signer, unsigned == nil, questions < Self.mostQuestions, route.servesTLS(for: asked),
            isAnsweredInside(result), let question = worker.leafRequest(for: asked)
        else { return false }
        questions += 1
        if case .success(let upstream) = result { reached = upstream }
        signer.ask(question) { [weak self] answer in
            guard let self, completion != nil else { return }
            reached = nil
            if case .failure(let failure) = answer { unsigned = failure }
            end(result)
        }
        return true
    }

    /// Whether the client gets TLS: its requests are served, or a page refuses them.
    private func isAnsweredInside(_ result: Result<UpstreamConnection, UpstreamFailure>) -> Bool {
        switch result {
        case .success: true
        case .failure(let failure): showsRefusals && failure.isRefusalOfOrigin
        }
    }

    /// Whether the client learns inside its TLS why the origin was refused.
    var showsRefusals: Bool { route.entry?.showsRefusals == true || isForGRPC && route.servesTLS(for: asked) }
}
