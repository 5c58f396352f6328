import Configuration
import HTTPWire
import Session

/// Who is at the other end of a client's connection. Its user is known from the beginning. The processes are looked for when the
/// connection begins, if there is a log of its requests, or somebody looks at its tasks; and for a decision, which waits for them, if
/// the entry of the host asks for them (`clients`).
extension ClientConnection {
    /// As far as it is known.
    var peer: ClientPeer { identity.peer }

    /// The entry of the host decides by what isn't known of it yet.
    /// - Parameter authority: canonical.
    func awaitsPeer(for authority: Authority) -> Bool {
        let snapshot = worker.snapshot
        guard snapshot.asksForProcesses, peer.needsProcesses else { return false }
        return snapshot.entry(for: authority.host, port: authority.port)?.clients?.asksForProcesses == true
    }

    /// Asks for those who only want to know: nobody waits.
    package func askPeer() {
        guard !isPeerLookedFor, peer.needsProcesses else { return }
        isPeerLookedFor = true
        worker.shared.peers.ask(peer, isComplete: false, on: worker.loop) { [weak self] peer in self?.found(peer) }
    }

    /// Asks for a decision.
    func askForDecision() {
        guard !isPeerAsked, peer.needsProcesses else { return }
        isPeerAsked = true
        worker.shared.peers.ask(peer, isComplete: true, on: worker.loop) { [weak self] peer in self?.found(peer) }
    }

    private func found(_ peer: ClientPeer) {
        // All of it may be known by now.
        guard self.peer.needsProcesses else { return }
        identity.peer = peer
        record.traits = peer.traits
        guard !peer.needsProcesses else { return }
        switch state {
        case .identifying where !isAwaitingRuns: goOn()
        case .relaying: reviewRelay()
        default: break
        }
    }

    /// Keeps the request in hand until it is known who asks.
    /// - Parameter work: what follows, in the state that is left now.
    func identify(then work: @escaping Step) {
        keepRequest { client in
            // A reload may have come meanwhile.
            if client.withdrawal != nil { client.received(by: client.server) } else { work(client) }
        }
        askForDecision()
    }

    /// Keeps the request in hand until somebody else has answered, and ``goOn()`` is called.
    func keepRequest(for work: @escaping Step) {
        state = .identifying(state, work)
        server.setDeadline(afterNanoseconds: worker.serverSettings.idleNanoseconds)
    }

    /// What was awaited is known: on with the request, unless its task is suspended.
    func goOn() {
        guard case .identifying(let before, let work) = state else { return }
        if holdsBack({ $0.goOn() }) { return }
        state = before
        server.clearDeadline()
        work(self)
    }

    /// For whom a route was, by what is known of it now.
    func client(as client: Route.Client) -> Route.Client {
        Route.Client(place: client.place, asker: .client(peer), via: client.via)
    }
}
