import Configuration
import HTTPWire
import Session

/// Who is at the other end of a client's connection. Its user is known from the beginning. The processes are looked for when the
/// connection begins, if there is a log of its requests, or somebody looks at its tasks; and for a decision, which waits for them, if
/// the entry of the host asks for them (`clients`).
extension ClientConnection {
    /// The entry of the host decides by what isn't known of the client yet.
    /// - Parameter authority: canonical.
    func awaitsPeer(for authority: Authority) -> Bool {
        let snapshot = worker.snapshot
        guard snapshot.asksForProcesses, peer.needsProcesses else { return false }
        return snapshot.entry(for: authority.host, port: authority.port)?.clients?.asksForProcesses == true
    }

    /// Asks for those who only want to know: nothing waits.
    package func askPeer() {
        guard !inquiries.isPeerLookedFor, peer.needsProcesses else { return }
        inquiries.isPeerLookedFor = true
        worker.shared.peers.ask(peer, isComplete: false, on: worker.loop) { [weak self] peer in self?.found(peer) }
    }

    /// Asks for a decision.
    func askForDecision() {
        guard !inquiries.isPeerAsked, peer.needsProcesses else { return }
        inquiries.isPeerAsked = true
        worker.shared.peers.ask(peer, isComplete: true, on: worker.loop) { [weak self] peer in self?.found(peer) }
    }

    private func found(_ peer: ClientPeer) {
        // All of it may be known by now.
        guard self.peer.needsProcesses else { return }
        self.peer = peer
        record.traits = peer.traits
        guard !peer.needsProcesses else { return }
        switch state.phase {
        case .relaying: reviewRelay()
        default: if !inquiries.isAwaitingRuns { request.goOn() }
        }
    }

    /// For whom a route was, by what is known of the client now.
    func client(as client: Route.Client) -> Route.Client {
        Route.Client(place: client.place, asker: .client(peer), via: client.via)
    }
}

extension ClientRequest {
    /// Keeps the request in hand until the client is identified.
    func identify(then step: @escaping Step) {
        keep { request in
            // There may have been a reload meanwhile.
            if request.connection.withdrawal(of: request.identity) != nil { request.received(by: request.server) } else { step(request) }
        }
        connection.askForDecision()
    }
}
