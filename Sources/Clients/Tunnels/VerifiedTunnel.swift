import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// The beginning of a verified tunnel: holds the handshake back until the policy has accepted the origin.
///
/// ClientHello passes once its SNI is CONNECT's host. The server's answer is held and read: up to TLS 1.2 its
/// certificates are judged. TLS 1.3 encrypts them, and a resumed session has no certificates: there the verdict of a
/// probe decides, at the same address with the same SNI and ALPN. Bytes after ClientHello, such as early data, wait
/// too.
final class VerifiedTunnel: ByteStreamOwner {
    enum Ending {
        /// Both sides may flow. No verdict: a reload has ended its verification.
        case verified(TunnelVerdict?)
        /// The client gets these bytes, a TLS alert, then the end.
        case refused(saying: [UInt8], TunnelRefusal)
        /// A side has closed, or doesn't speak TLS.
        case failed(TunnelRefusal)
    }

    private enum Step {
        case hello
        case flight
        case verdict
        /// The ClientHello that answers a HelloRetryRequest.
        case secondHello
    }

    let worker: WorkerContext
    var route: Route
    let upstream: UpstreamConnection
    /// The client; nil: its connection has ended.
    private let requester: () -> Requester?
    private let downstream: ByteStream
    private var completion: ((Ending) -> Void)?

    private var step = Step.hello
    private(set) var hello: ClientHello?
    private var flight = ServerFlight()
    private var fromClient: ByteBuffer
    private var fromServer: ByteBuffer
    /// Bytes of each side that may be passed on.
    private var clearedUp = 0
    private var clearedDown = 0
    /// Held bytes that the flight has parsed.
    private var looked = 0
    private(set) var bytesUp: UInt64 = 0
    private(set) var bytesDown: UInt64 = 0

    var probe: UpstreamProbe?
    /// No reads or writes until ``resume()``; a verdict may arrive.
    private var isSuspended = false
    /// The verdict about a HelloRetryRequest; the ServerHello after it needs no other.
    private var retryVerdict: TunnelVerdict?

    /// The longest ClientHello, in the smallest records, or some early data before a second one.
    private static let helloLimit = 128 << 10
    private static let flightLimit = ServerFlight.limit + (32 << 10)

    /// - Parameters:
    ///   - received: the client's bytes after CONNECT.
    ///   - completion: called once, on the loop, perhaps before ``start()`` returns; never after ``cancel()``. The
    ///     upstream side of a refused or failed tunnel is closed by then.
    init(
        worker: WorkerContext, route: Route, requester: @escaping () -> Requester?, downstream: ByteStream,
        upstream: UpstreamConnection, received: consuming ByteBuffer, completion: @escaping (Ending) -> Void
    ) {
        self.worker = worker
        self.route = route
        self.requester = requester
        self.downstream = downstream
        self.upstream = upstream
        fromClient = received
        fromServer = ByteBuffer(slabs: worker.session.slabs)
        self.completion = completion
    }

    func start() {
        downstream.owner = self
        upstream.stream.owner = self
        lookAtHello()
    }

    func cancel() {
        completion = nil
        probe?.cancel()
        probe = nil
        upstream.stream.abort()
    }

    func suspend() {
        isSuspended = true
        downstream.wantsRead = false
        upstream.stream.wantsRead = false
    }

    func resume() {
        isSuspended = false
        guard completion != nil else { return }
        switch step {
        case .hello, .secondHello: downstream.wantsRead = true
        case .flight: upstream.stream.wantsRead = true
        case .verdict: break
        }
        passOn()
    }

    func takeFromClient() -> ByteBuffer { fromClient.take() }
    func takeFromServer() -> ByteBuffer { fromServer.take() }

    // MARK: Events

    func streamIsReadable(_ stream: ByteStream) {
        if isSuspended {
            stream.wantsRead = false
            return
        }
        switch (step, stream === downstream) {
        case (.hello, true), (.secondHello, true): readHello()
        case (.flight, false): readFlight()
        default: stream.wantsRead = false
        }
    }

    func streamIsWritable(_ stream: ByteStream) { passOn() }

    private func passOn() {
        if isSuspended { return }
        let received = fromClient.count
        if clearedUp > 0, case .failed(let error) = upstream.stream.write(clearedUp, from: &fromClient) {
            return fail("origin: \(error)", "connection_terminated")
        }
        clearedUp -= received - fromClient.count
        bytesUp += UInt64(received - fromClient.count)
        let held = fromServer.count
        if clearedDown > 0, case .failed(let error) = downstream.write(clearedDown, from: &fromServer) {
            return fail("client: \(error)", "connection_terminated")
        }
        clearedDown -= held - fromServer.count
        looked -= held - fromServer.count
        bytesDown += UInt64(held - fromServer.count)
    }

    // MARK: The client's hello

    private func readHello() {
        guard fromClient.makeRoom(limit: Self.helloLimit) else {
            return fail("the client sent too much before its ClientHello", Self.tlsError)
        }
        switch downstream.read(into: &fromClient) {
        case .received: lookAtHello()
        case .blocked: break
        case .ended: fail("the client ended before its ClientHello", Self.tlsError)
        case .failed(let error): fail("client: \(error)", Self.tlsError)
        }
    }

    private func lookAtHello() {
        let isSecond = if case .secondHello = step { true } else { false }
        switch isSecond ? ClientHello.peekSecond(fromClient.span) : ClientHello.peek(fromClient.span) {
        case .incomplete: downstream.wantsRead = true
        case .notTLS: fail("the client does not speak TLS", Self.tlsError)
        case .malformed(let error): fail("the client sent \(error.message)", Self.tlsError)
        case .complete(let hello): received(hello)
        }
    }

    private func received(_ hello: ClientHello) {
        downstream.wantsRead = false
        if let name = hello.serverName, !route.authority.isNamed(name) {
            return refuse(
                .unrecognizedName, Misdirection(serverName: name).cause(connected: route.authority),
                "http_request_error")
        }
        if let first = self.hello,
            first.serverName != hello.serverName || first.applicationProtocols != hello.applicationProtocols
        {
            return refuse(.illegalParameter, "the client's second ClientHello is not like its first", Self.tlsError)
        }
        self.hello = hello
        clearedUp = hello.length
        step = .flight
        upstream.stream.wantsRead = true
        passOn()
        // More may be held after a HelloRetryRequest.
        lookAtFlight()
    }

    // MARK: The server's flight

    private func readFlight() {
        guard fromServer.makeRoom(limit: Self.flightLimit) else {
            return refuse(.handshakeFailure, "the origin's first flight is too long", Self.tlsError)
        }
        switch upstream.stream.read(into: &fromServer) {
        case .received: lookAtFlight()
        case .blocked: break
        case .ended: fail("the origin ended the connection within the TLS handshake", Self.tlsError)
        case .failed(let error): fail("origin: \(error)", Self.tlsError)
        }
    }

    private func lookAtFlight() {
        guard completion != nil, case .flight = step, looked < fromServer.count else { return }
        let progress = flight.receive(fromServer.span.extracting(looked...))
        if case .incomplete = progress {
            looked = fromServer.count
            return
        }
        step = .verdict
        upstream.stream.wantsRead = false
        switch progress {
        case .incomplete: break
        case .retry(let end):
            looked += end
            judgeByProbe(version: .tls13) { $0.retry(after: $1) }
        case .encrypted(let isResumed):
            guard !isResumed || hello?.sessions.hasPreSharedKey == true else { return refuseResumption() }
            // Unless a reload came meanwhile.
            if let retryVerdict, route.snapshot === worker.snapshot { return end(.verified(retryVerdict)) }
            judgeByProbe(version: .tls13) { $0.end(.verified($1)) }
        case .resumed(let version, let sessionID):
            let version = wireVersion(version)
            // Older versions are refused anyway.
            let isOffered = hello?.sessions.allows(sessionID: sessionID) == true
            guard version != .tls12 || isOffered else { return refuseResumption() }
            judgeByProbe(version: version) { $0.end(.verified($1)) }
        case .shown(let shown):
            judge(shown) { $0.end(.verified($1)) }
        case .alert(let alert, let end):
            // The origin has proved nothing: the client gets only the alert, and no unjudged bytes before it.
            self.end(
                .refused(
                    saying: Array(fromServer.unread[..<(looked + end)].suffix(TunnelAlert.recordLength)),
                    TunnelRefusal(
                        cause: "the origin ended the TLS handshake with alert \(alert)", errorType: "tls_alert_received"
                    )))
        case .malformed(let error):
            refuse(.handshakeFailure, "the origin sent \(error.message)", Self.tlsError)
        }
    }

    /// A resumption shows no certificate, and this client has no session to resume.
    private func refuseResumption() {
        refuse(.illegalParameter, "the origin resumed a session that the client didn't offer", Self.tlsError)
    }

    /// The server wants another ClientHello, and its identity was verified.
    private func retry(after verdict: TunnelVerdict?) {
        guard let verdict else { return end(.verified(nil)) }
        guard clearedUp == 0 else {
            return refuse(.handshakeFailure, "the origin answered before it was asked", Self.tlsError)
        }
        retryVerdict = verdict
        clearedDown = looked
        step = .secondHello
        passOn()
        if completion != nil { lookAtHello() }
    }

    // MARK: The end

    static let tlsError = "tls_protocol_error"

    func refuse(_ alert: TunnelAlert, _ cause: String, _ errorType: String, _ contact: OriginContact? = nil) {
        end(.refused(saying: alert.record, TunnelRefusal(cause: cause, errorType: errorType, contact: contact)))
    }

    func refuse(_ refusal: Refusal, _ contact: OriginContact?) {
        end(
            .refused(
                saying: TunnelAlert(for: refusal).record,
                TunnelRefusal(
                    cause: refusal.title, errorType: "tls_certificate_error", isPinFailure: refusal.isPinFailure,
                    contact: contact)))
    }

    /// The connection and the check, for a report.
    func judged(_ check: TunnelVerdict.Check?) -> WorkerContext.Judged {
        WorkerContext.Judged(
            route: route, requester: requester() ?? Requester(task: 0, client: nil, traits: nil), check: check)
    }

    private func fail(_ cause: String, _ errorType: String) {
        end(.failed(TunnelRefusal(cause: cause, errorType: errorType)))
    }

    func end(_ ending: Ending) {
        guard let completion else { return }
        self.completion = nil
        probe?.cancel()
        probe = nil
        downstream.wantsRead = false
        upstream.stream.wantsRead = false
        if case .verified = ending {} else { upstream.close() }
        completion(ending)
    }
}
