import PinproxyConfiguration
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// How a client's connection ends, and what is logged of its tasks.
extension ClientConnection {
    /// - Parameter cause: nil: the record has it.
    func fail(_ cause: String?) {
        if let cause { record.failed(cause) }
        worker.session.complete(&record)
        server.close()
    }

    /// The proxy stops: exchanges in flight continue, idle connections are closed.
    package func drain() {
        switch (state.phase, carrier) {
        case (.relaying, .relaying(let relay, _)): drain(relay)
        // Nothing was carried yet.
        case (.awaitingHandshake, _), (.verifying, _): server.setDeadline(afterNanoseconds: handshakeNanoseconds)
        case (.connecting, _): boundConnecting()
        default:
            if let http2 {
                for request in http2.requests { if let relay = request.upgrade?.relay { drain(relay) } }
                return http2.drain(lastChance: WorkerContext.lastChanceNanoseconds)
            }
            server.drain(lastChance: WorkerContext.lastChanceNanoseconds)
        }
    }

    func drain(_ relay: Relay) {
        relay.drain(quietNanoseconds: worker.quietTunnelNanoseconds, because: Self.stopped)
    }

    static let stopped = "the proxy was stopped"

    /// For a TLS handshake inside CONNECT; at most a quiet tunnel's limit while the proxy stops.
    var handshakeNanoseconds: UInt64 {
        let patience = worker.snapshot.timeouts.tlsHandshake.nanoseconds
        return worker.isDraining ? min(patience, worker.quietTunnelNanoseconds) : patience
    }

    /// While the proxy stops, an unconnected CONNECT counts as an idle tunnel.
    func boundConnecting() {
        guard worker.isDraining, case .connecting = state.phase, !state.isSuspended else { return }
        server.setDeadline(afterNanoseconds: worker.quietTunnelNanoseconds)
    }

    /// Ends the connection at once. An unanswered CONNECT gets an answer.
    package func stop() {
        cause = Self.stopped
        if state.takesRequests { return cut(Self.stopped) }
        happened(.cancel)
        server.close()
    }

    func giveUp() {
        if worker.isDraining { return fail(Self.stopped) }
        switch state.phase {
        case .verifying: fail("the TLS handshake in the tunnel took too long")
        case .awaitingHandshake, .securing:
            cut("the client's TLS handshake took longer than \(worker.snapshot.timeouts.tlsHandshake)")
        default: server.abort()
        }
    }

    func cut(_ cause: String) {
        if isUnanswered { record.failed(cause) }
        switch carrier {
        case .relaying(let relay, _): return relay.cancel(because: cause)
        case .verifying(let verification):
            record.tunnelBegan(up: verification.bytesUp, down: verification.bytesDown)
            record.failed(cause)
            worker.session.complete(&record)
            return server.abort()
        case .none: break
        }
        if let http2 { return http2.stop(cause) }
        if state.takesRequests { request.completeHeld(cause) }
        server.stop(cause)
    }

    private var isUnanswered: Bool {
        if request.isWaiting { return record.ended == nil }
        switch state.phase {
        case .connecting, .answering, .awaitingHandshake, .securing: return record.ended == nil
        case .open, .inside, .verifying, .relaying, .closed: return false
        }
    }

    /// Logs a request that its client abandoned.
    func completeUnanswered() {
        guard isUnanswered else { return }
        if record.failure == nil { record.failed("the client's connection broke before it was answered") }
        worker.session.complete(&record)
    }

    func release() {
        tunnel?.attempt?.cancel()
        if case .verifying(let verification) = carrier { verification.cancel() }
        carrier = .none
        giveBackKept()
    }
}
