import Configuration
import EventLoop
import HTTPWire
import Security
import Session
import TLS
import Transport

/// CONNECT: the upstream first, then the answer, then TLS with a minted leaf, or a tunnel.
extension ClientConnection {
    func connect(_ route: Route) {
        self.route = route
        exchange.record.entry = route.entry?.pattern
        skipHead()
        phase = .connecting
        if case .tls = route.target.layer, let idle = route.origin.takeIdle(at: worker.unixTime()) {
            leased = idle
            return answerConnect(route)
        }
        dial(route)
    }

    /// - Parameter address: that of an origin that a probe has accepted; nil: any of the host's.
    func dial(_ route: Route, at address: SocketAddress? = nil) {
        attempt = worker.connector.connect(to: route.target, at: address, timeouts: worker.snapshot.timeouts) {
            [unowned self] result in
            attempt = nil
            worker.report(result, of: route)
            switch result {
            case .success(let connection):
                if case .verifiedTunnel = route.target.layer, address == nil { return probe(route, over: connection) }
                leased = connection
                answerConnect(route)
            case .failure(let failure): refuseConnect(failure, route)
            }
        }
    }

    func refuseConnect(_ failure: UpstreamFailure, _ route: Route) {
        self.route = nil
        refuseRequest(.upstream(failure, route))
    }

    func answerConnect(_ route: Route) {
        switch route.target.layer {
        case .tunnel, .verifiedTunnel: say(Self.established, then: .tunnel)
        case .plain, .tls:
            leased?.hold()
            say(Self.established, then: .secure)
        }
    }

    private static let established = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

    func beginSecuring() {
        guard let route else { return abort() }
        phase = .securing
        deadline.set(afterNanoseconds: worker.snapshot.timeouts.tlsHandshake.nanoseconds)
        do {
            let identity = try worker.context.leaves.identity(
                for: ServerName(host: route.authority.host), now: worker.unixTime())
            let early = requests.takeReceived()
            let connection = try stream.withDescriptor { descriptor in
                try TLSConnection(
                    server: worker.context.serverTLS, descriptor: descriptor, identity: identity,
                    ticketContext: SHA256Digest.of(Array(route.authority.description.utf8)).bytes,
                    alreadyReceived: early)
            }
            stream.secure(connection)
        } catch {
            fail("no certificate for \(route.authority): \(error)")
        }
    }

    func streamDidSecure(_ stream: ByteStream, _ result: Result<Void, StreamError>) {
        guard let route else { return }
        switch result {
        case .success:
            if let name = stream.withTLS({ $0.clientServerName }) ?? nil,
                !route.authority.isNamed(name)
            {
                misdirectedName = name
            }
            phase = .awaitingRequest
            stream.wantsRead = true
            deadline.set(afterNanoseconds: worker.requestNanoseconds)
            if stream.holdsBytes { receiveRequest() }
        case .failure(let error):
            fail("the client's TLS handshake failed: \(error)")
        }
    }

    func beginTunnel() {
        guard let route, let upstream = leased else { return abort() }
        leased = nil
        if case .verifiedTunnel = route.target.layer { return verify(upstream, for: route) }
        becomeRelay(with: upstream, record: exchange.record)
    }

    /// From here on bytes are carried unread: a tunnel, or another protocol after an upgrade.
    func becomeRelay(with upstream: UpstreamConnection, record: ExchangeRecord) {
        relay(
            with: upstream, record: record, received: requests.takeBuffer(),
            answered: upstream.responses.takeBuffer())
    }

    /// - Parameters:
    ///   - received: of the client's, to be carried first.
    ///   - answered: of the origin's.
    func relay(
        with upstream: UpstreamConnection, record: ExchangeRecord, received: consuming ByteBuffer,
        answered: consuming ByteBuffer
    ) {
        phase = .relaying
        deadline.clear()
        var record = record
        let relay = Relay(
            loop: worker.loop, downstream: stream, upstream: upstream.stream,
            received: received, answered: answered, idleNanoseconds: worker.idleNanoseconds
        ) { [unowned self] ending in
            record.relayEnded(ending, up: self.relay?.bytesUp ?? 0, down: self.relay?.bytesDown ?? 0)
            worker.log(&record, of: self)
            leave()
        }
        self.relay = relay
        relay.start()
    }
}
