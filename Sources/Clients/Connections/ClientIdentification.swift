import Configuration
import EventLoop
import HTTPWire
import Records
import Session

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

    /// For information: nothing waits.
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
            if !inquiries.isAwaitingRuns { for request in requests { request.goOn() } }
        }
    }

    /// With what is known of the client now.
    func client(as client: Route.Client) -> Route.Client {
        Route.Client(place: client.place, asker: .client(peer), via: client.via)
    }
}

extension WorkerContext {
    /// Finds the client of a refused origin, for the evidence.
    /// - Parameter report: called once, on the loop; perhaps before this returns, and also if the client leaves.
    func identify(_ client: ClientConnection, then report: @escaping (WorkerContext, Requester) -> Void) {
        guard client.record.traits?.process == nil, client.peer.needsProcesses,
            pending.mayWait(at: MonotonicTime.now().nanoseconds)
        else { return report(self, Requester(client.record)) }
        let place = pending.keep(PendingReport(requester: Requester(client.record), report: report))
        shared.peers.ask(client.peer, isComplete: true, on: loop) { [weak self, weak client] peer in
            guard let self, let pending = pending.take(place) else { return }
            client?.found(peer)
            let before = pending.requester
            let traits = peer.traits ?? before.traits
            pending.report(self, Requester(task: before.task, client: before.client, traits: traits))
        }
    }
}

/// A refusal that waits for its client to be found. Kept by the worker: the search may release its closure on another
/// thread.
struct PendingReport {
    let requester: Requester
    let report: (WorkerContext, Requester) -> Void
}

struct PendingReports {
    /// In a second. A search takes a while, and a client that is refused a thousand times is known by then.
    static let searchesPerSecond = 4

    private var reports: [UInt64: PendingReport] = [:]
    private var next: UInt64 = 0
    private var second: (began: UInt64, searches: Int) = (0, 0)

    /// Whether one more refusal may wait for its client to be found.
    mutating func mayWait(at nanoseconds: UInt64) -> Bool {
        if second.searches == 0 || nanoseconds - second.began >= 1_000_000_000 { second = (nanoseconds, 0) }
        second.searches += 1
        return second.searches <= Self.searchesPerSecond
    }

    mutating func keep(_ report: PendingReport) -> UInt64 {
        next += 1
        reports[next] = report
        return next
    }

    mutating func take(_ place: UInt64) -> PendingReport? { reports.removeValue(forKey: place) }
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
