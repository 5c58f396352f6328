import Configuration
import EventLoop
import HTTPWire
import Session
import TLS
import Transport

/// One request with its response, between a client and an origin. A client connection uses the same
/// object for all its exchanges, one after the other.
///
/// ```
/// begin → connecting → awaitingResponse → relaying → over
///                         ↑    ↓    ↘ switching → relay
///                        interim
/// ```
/// The request goes on being sent while the response arrives; the phase tells of the response only.
final class Exchange: ByteStreamOwner {
    enum Phase {
        case over
        /// An upstream connection is being made.
        case connecting
        case awaitingResponse
        /// A 1xx response is on its way to the client.
        case interim
        /// The final response is on its way to the client.
        case relaying
        /// `101 Switching Protocols` is on its way to the client.
        case switching
    }

    unowned let client: ClientConnection
    let worker: Worker
    /// The request under way; the client connection parses into it.
    var request = RequestHead()
    var response = ResponseHead()
    var parser: HeadParser
    var phase = Phase.over
    var record = ExchangeRecord()

    private var route: Route?
    var upstream: UpstreamConnection?
    private var attempt: UpstreamAttempt?
    /// The whole request has been written.
    var requestPassed = false
    /// The origin stopped taking the request; its answer may be there all the same.
    private var requestCut = false
    /// The request is being sent for the second time.
    private var retried = false
    /// The request carries credentials for the connection that it is sent on.
    private var isPersonal = false
    var keepsClient = false
    /// The request can't go on until the origin takes more of it, or says that it wants its body.
    var requestWaitsForOrigin = false
    var expectsContinue = false
    lazy var deadline = Deadline(loop: worker.loop) { [unowned self] in timedOut() }

    init(client: ClientConnection, worker: Worker) {
        self.client = client
        self.worker = worker
        parser = HeadParser(limit: worker.snapshot.limits.responseHead)
    }

    var isUnderWay: Bool { phase != .over }
    /// The configuration that the exchange began under; it keeps it through a reload.
    var snapshot: Snapshot { route?.snapshot ?? worker.snapshot }
    var host: String { route?.authority.host ?? "" }

    // MARK: The request

    /// Begins with the request in ``request``, whose head is in front of the client's received bytes.
    /// - Parameter leased: an upstream connection that the client connection has at hand.
    func begin(to route: Route, leased: UpstreamConnection?) {
        self.route = route
        requestPassed = false
        requestCut = false
        retried = false
        requestWaitsForOrigin = false
        expectsContinue = request.expectsContinue
        phase = .connecting
        if let leased { start(on: leased) } else { obtainUpstream() }
    }

    private func obtainUpstream() {
        guard let route else { return }
        while let idle = route.origin.takeIdle(at: worker.unixTime()) {
            // What can't be sent twice had better not be sent to a connection that is gone already.
            if !request.method.isIdempotent, idle.stream.isStale {
                idle.close()
                continue
            }
            return start(on: idle)
        }
        connect(to: route)
    }

    private func connect(to route: Route) {
        phase = .connecting
        // The steps of connecting have deadlines of their own; that of an earlier try is not theirs.
        deadline.clear()
        attempt = worker.connector.connect(to: route.target, timeouts: snapshot.timeouts) {
            [unowned self] result in
            attempt = nil
            worker.report(result, of: route)
            switch result {
            case .success(let connection): start(on: connection)
            case .failure(let failure): refuse(.upstream(failure, route))
            }
        }
    }

    private func start(on connection: UpstreamConnection) {
        upstream = connection
        connection.exchanges += 1
        connection.stream.owner = self
        connection.stream.wantsRead = true
        record.connected(connection)
        parser.reset()
        parser.limit = snapshot.limits.responseHead
        phase = .awaitingResponse
        if !retried { writeRequestHead(to: connection) }
        if isPersonal { connection.isPersonal = true }
        pumpRequest(readable: false)
    }

    private func writeRequestHead(to connection: UpstreamConnection) {
        guard let route else { return }
        let length = Int(request.length)
        isPersonal = unsafe request.authenticatesConnection(in: Span(_unsafeBytes: client.requests.unread))
        worker.headScratch.removeAll(keepingCapacity: true)
        unsafe HeadWriter.write(
            request: request, from: Span(_unsafeBytes: client.requests.unread),
            target: route.sendsAbsoluteTarget ? .asReceived : .originForm,
            authority: route.authority, defaultPort: route.defaultPort, via: snapshot.proxy.via,
            forwardUpgrade: request.wantsUpgrade, into: &worker.headScratch)
        if let authorization = route.parentAuthorization {
            worker.headScratch.removeLast(2)
            worker.headScratch += Array("Proxy-Authorization: \(authorization)\r\n\r\n".utf8)
        }
        client.requests.begin(
            head: &worker.headScratch, inPlaceOf: length, framing: request.framing,
            replayable: connection.isReused && request.method.isIdempotent)
    }

    private func pumpRequest(readable: Bool) {
        guard let upstream, !requestPassed, !requestCut else { return }
        switch client.requests.pump(from: client.stream, to: upstream.stream, readable: readable) {
        case .waiting:
            requestWaitsForOrigin = expectsContinue
            deadline.set(
                afterNanoseconds: expectsContinue ? worker.firstByteNanoseconds : worker.idleNanoseconds)
        case .blocked:
            requestWaitsForOrigin = true
            deadline.set(
                afterNanoseconds: phase == .awaitingResponse ? worker.firstByteNanoseconds : worker.idleNanoseconds)
        case .ended:
            requestPassed = true
            client.stream.wantsRead = true
            record.requestSent(at: worker.loop.now)
            if phase == .awaitingResponse { deadline.set(afterNanoseconds: worker.firstByteNanoseconds) }
        case .truncated: clientVanished("the client ended in the middle of the request")
        case .sourceFailed(let error): clientVanished(error.description)
        case .sinkFailed:
            requestCut = true
            client.stream.wantsRead = false
            deadline.set(afterNanoseconds: worker.firstByteNanoseconds)
        case .malformed(let error): refuse(.badRequest(error))
        }
    }

    // MARK: Events

    /// The client has sent something, or ended.
    func clientIsReadable() {
        if phase != .connecting, !requestPassed {
            guard !requestCut else { return }
            expectsContinue = false
            pumpRequest(readable: true)
        } else {
            receiveAhead()
        }
    }

    /// Receives what the client sends before its turn, as far as the buffer goes; so that its going is noticed.
    private func receiveAhead() {
        switch client.requests.receive(from: client.stream, limit: SlabPool.slabSize) {
        case nil: client.stream.wantsRead = false
        case .received?, .blocked?: break
        case .ended?:
            client.hasEnded = true
            client.stream.wantsRead = false
        case .failed(let error)?: clientVanished(error.description)
        }
    }

    func clientIsWritable() {
        switch phase {
        case .interim:
            pumpResponse(readable: false)
            if phase == .awaitingResponse { parseResponseHead() }
            if phase == .awaitingResponse, upstream?.stream.holdsBytes == true { receiveResponseHead() }
        case .relaying, .switching: pumpResponse(readable: false)
        case .over, .connecting, .awaitingResponse: break
        }
    }

    func streamIsReadable(_ stream: ByteStream) {
        switch phase {
        case .awaitingResponse: receiveResponseHead()
        case .relaying: pumpResponse(readable: true)
        case .interim, .switching, .over, .connecting: stream.wantsRead = false
        }
    }

    func streamIsWritable(_ stream: ByteStream) { pumpRequest(readable: false) }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {}

    // MARK: The end

    func finish(_ upstream: UpstreamConnection) {
        record.bytesDown = upstream.responses.carried
        record.bytesUp = client.requests.carried
        // The client sent its request to the end, though the origin didn't take it: the next one follows.
        if !requestPassed, client.requests.isComplete { client.requests.abandon() }
        let reusable =
            requestPassed && response.keepsAlive && response.framing != .untilClose
            && upstream.responses.unread.isEmpty && !upstream.stream.holdsBytes
        self.upstream = nil
        if reusable, upstream.isPersonal, keepsClient {
            client.keep(upstream)
        } else if reusable {
            worker.pool.giveBack(upstream, idleNanoseconds: worker.upstreamIdleNanoseconds)
        } else {
            upstream.close()
        }
        over()
        client.exchangeEnded(keepsConnection: keepsClient)
    }

    /// Leaves the phases; the log line is written here and nowhere else.
    private func over() {
        phase = .over
        deadline.clear()
        attempt?.cancel()
        attempt = nil
        route = nil
        worker.log(&record, of: client)
    }

    func upstreamDied(_ cause: String) {
        guard let upstream, let route else { return }
        let mayRetry =
            !retried && upstream.isReused && upstream.responses.unread.isEmpty
            && client.requests.canRewind
        upstream.stream.stop()
        self.upstream = nil
        guard mayRetry else { return refuse(.upstreamClosed(cause, host: host)) }
        retried = true
        requestPassed = false
        requestCut = false
        client.requests.rewind()
        connect(to: route)
    }

    /// Tells the client why there is no response, if none has begun; else cuts it, visibly.
    func refuse(_ error: ProxyError) {
        guard phase != .interim, phase != .relaying, phase != .switching else { return cut(error.cause) }
        dropUpstream()
        record.refused(error)
        let method = request.method
        over()
        client.refuse(error, method: method, keepsConnection: false)
    }

    /// The response can't be finished: the client must not take what it has for the whole. What was written
    /// still reaches it, however slowly it reads.
    func cut(_ cause: String) {
        record.failed(cause)
        let isDelivered = phase == .relaying && upstream?.responses.isDrained == true
        let isFramed = request.version == .http11 || hasLength
        leaveAbruptly()
        if isDelivered { client.breakOff(isFramed: isFramed) } else { client.abort() }
    }

    private var hasLength: Bool { if case .length = response.framing { true } else { false } }

    func clientVanished(_ cause: String) {
        record.failed("client: \(cause)")
        leaveAbruptly()
        client.abort()
    }

    private func leaveAbruptly() {
        record.bytesDown = upstream?.responses.carried ?? 0
        record.bytesUp = client.requests.carried
        dropUpstream()
        over()
    }

    private func dropUpstream() {
        upstream?.stream.abort()
        upstream = nil
    }

    /// Ends what is under way because the proxy stops.
    func cancel() {
        guard isUnderWay else { return }
        cut("the proxy was stopped")
    }

    private func timedOut() {
        switch phase {
        case .awaitingResponse where requestPassed || requestCut || requestWaitsForOrigin:
            refuse(.noResponse(after: snapshot.timeouts.firstByte, host: host))
        case .awaitingResponse: refuse(.requestStalled(after: snapshot.timeouts.idleClient))
        default: cut("nothing moved for \(snapshot.timeouts.idleClient)")
        }
    }
}
