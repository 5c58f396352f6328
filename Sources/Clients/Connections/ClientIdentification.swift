import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxyRecords
import PinproxySession

/// Finds the processes at the other end: when the connection begins, for the access log or the list of tasks; and for a
/// decision, which waits for them, if the host's entry asks for them (`clients`).
extension ClientConnection {
    /// Whether the host's entry decides by processes that aren't known yet.
    /// - Parameter authority: canonical.
    func awaitsPeer(for authority: Authority) -> Bool {
        let snapshot = worker.snapshot
        guard snapshot.asksForProcesses, peer.needsProcesses else { return false }
        return snapshot.entry(for: authority.host, port: authority.port)?.clients?.asksForProcesses == true
    }

    /// Looks up the processes for the log; nothing waits for them.
    package func askPeer() {
        guard !inquiries.isPeerLookedFor, peer.needsProcesses else { return }
        inquiries.isPeerLookedFor = true
        worker.shared.peers.ask(peer, isComplete: false, on: worker.loop) { [weak self] peer in self?.found(peer) }
    }

    func askForDecision() {
        guard !inquiries.isPeerAsked, peer.needsProcesses else { return }
        inquiries.isPeerAsked = true
        worker.shared.peers.ask(peer, isComplete: true, on: worker.loop) { [weak self] peer in self?.found(peer) }
    }

    func found(_ peer: ClientPeer) {
        // The other search may have ended first.
        guard self.peer.needsProcesses else { return }
        self.peer = peer
        record.traits = peer.traits
        attributeTrust()
        guard !peer.needsProcesses else { return }
        switch state.phase {
        case .relaying: reviewRelay()
        default:
            if let http2 {
                http2.note(record.traits)
                reviewRelay()
            }
            if !inquiries.isAwaitingRuns { for request in requests { request.proceed() } }
        }
    }

    /// With what is known of the client now.
    func client(as client: Route.Client) -> Route.Client {
        Route.Client(place: client.place, asker: .client(peer), via: client.via)
    }
}

extension WorkerContext {
    /// Finds the client of a refused origin, for the evidence.
    ///
    /// Waits ``PendingReports/patienceNanoseconds`` at most, and not at all where the worker or the user has spent what
    /// it may search in a second.
    /// - Parameter report: called once, on the loop; perhaps before this returns, and also if the client leaves.
    func identify(_ client: ClientConnection, then report: @escaping (WorkerContext, Requester) -> Void) {
        let requester = Requester(client.record)
        guard requester.traits?.process == nil, client.peer.needsProcesses, let user = client.peer.socket?.user,
            pending.maySearch(for: user, at: MonotonicTime.now())
        else { return report(self, requester) }
        let patience = PendingReports.patienceNanoseconds
        // Kept before the search begins: its answer may come at once.
        let place = pending.keep { place in
            let timer = Timer(loop: loop, owner: self, afterNanoseconds: patience) { worker in
                worker.pending.take(place)?.tell(worker, requester.traits)
            }
            return PendingReport(requester: requester, timer: timer, report: report)
        }
        shared.peers.ask(client.peer, isComplete: true, on: loop) { [weak self, weak client] peer in
            client?.found(peer)
            guard let self else { return }
            pending.take(place)?.tell(self, peer.traits)
        }
    }
}

extension ClientRequest {
    func identify(then step: @escaping Step) {
        keep { request in
            // There may have been a reload meanwhile.
            if request.connection.withdrawal(of: request.identity) != nil {
                request.received(by: request.server)
            } else {
                step(request)
            }
        }
        connection.askForDecision()
    }
}
