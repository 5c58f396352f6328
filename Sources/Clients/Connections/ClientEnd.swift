import Configuration
import HTTPWire
import Session
import Transport

/// How a client's connection ends, and what is told of what was under way.
extension ClientConnection {
    /// Ends the connection for a reason that there is nobody to tell.
    func fail(_ cause: String) {
        record.failed(cause)
        worker.session.complete(&record)
        server.close()
    }

    /// The proxy stops: what is under way goes on, what rests goes.
    package func drain() {
        switch state {
        case .relaying(let relay, _): drain(relay)
        // Nothing of it has been carried yet, and perhaps nothing ever will.
        case .awaitingHandshake, .verifying: server.setDeadline(afterNanoseconds: handshakeNanoseconds)
        case .connecting: boundConnecting()
        default: server.drain(lastChance: WorkerContext.lastChanceNanoseconds)
        }
    }

    func drain(_ relay: Relay) {
        relay.drain(quietNanoseconds: worker.quietTunnelNanoseconds, because: Self.stopped)
    }

    static let stopped = "the proxy was stopped"

    /// How long a TLS handshake inside CONNECT may take. While the proxy stops, that is no longer than a tunnel may be
    /// silent.
    var handshakeNanoseconds: UInt64 {
        let patience = worker.snapshot.timeouts.tlsHandshake.nanoseconds
        return worker.isDraining ? min(patience, worker.quietTunnelNanoseconds) : patience
    }

    /// While the proxy stops, a CONNECT without a connection counts as an idle tunnel.
    func boundConnecting() {
        guard worker.isDraining, case .connecting = state, !suspension.isSuspended else { return }
        server.setDeadline(afterNanoseconds: worker.quietTunnelNanoseconds)
    }

    /// The proxy stops before there is a connection for CONNECT. Its client can ask again.
    func refuseToConnect(_ attempt: ConnectAttempt) {
        // CONNECT was answered: what the client speaks is TLS.
        if server.isLent { return fail(Self.stopped) }
        attempt.cancel()
        state = .open
        suspension = .none
        server.refuseRequest(.stopping(host: attempt.route.authority.host))
    }

    /// Ends the connection whatever is in flight. A CONNECT that isn't answered yet gets an answer.
    package func stop() {
        guard case .connecting(let attempt) = state else { return cut(Self.stopped) }
        refuseToConnect(attempt)
        server.close()
    }

    /// Ends both sides where they stand.
    func cut(_ cause: String) {
        if isUnanswered { record.failed(cause) }
        switch state {
        case .relaying(let relay, _): relay.cancel(because: cause)
        case .verifying(let verification):
            record.tunnelBegan(up: verification.bytesUp, down: verification.bytesDown)
            record.failed(cause)
            worker.session.complete(&record)
            server.abort()
        case .open, .inside:
            completeHeld(cause)
            server.stop(cause)
        default: server.stop(cause)
        }
    }

    /// Whether a request has begun of which nobody has told yet what became of it.
    private var isUnanswered: Bool {
        switch state {
        case .identifying, .authenticating, .connecting, .promised, .promisedRefusal, .awaitingHandshake, .securing:
            record.ended == nil
        case .open, .inside, .verifying, .relaying, .closed: false
        }
    }

    /// A request that its client doesn't wait for to the end leaves its line all the same.
    func completeUnanswered() {
        guard isUnanswered else { return }
        if record.failure == nil { record.failed("the client's connection broke before it was answered") }
        worker.session.complete(&record)
    }

    /// The same for one whose body the rules write anew: the exchange that would complete its task has not begun.
    func completeHeld(_ cause: String) {
        guard isOpen, heldTask != nil else { return }
        record.failed(cause)
        worker.session.complete(&record)
    }

    var isOpen: Bool {
        switch state {
        case .open, .inside: true
        default: false
        }
    }

    /// Lets go of what the state holds.
    func release() {
        switch state {
        case .connecting(let attempt): attempt.cancel()
        case .verifying(let verification): verification.cancel()
        case .promised(_, let upstream): worker.giveBack(upstream)
        case .promisedRefusal, .awaitingHandshake, .securing, .inside, .open, .identifying, .authenticating, .relaying, .closed:
            break
        }
        giveBackKept()
    }
}
