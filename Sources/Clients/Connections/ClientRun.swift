import HTTPWire
import LocalPeers
import Session

/// The run of `pinproxy exec` that a client belongs to: by its token; or where it shows none (many programs take no name and password
/// from the proxy's URL, or send them only when they are asked) by what is said in answer by the process that began the run.
extension ClientConnection {
    /// The one that is told what is refused. What it may do is decided by ``ClientIdentity/run`` alone.
    var run: Run? {
        if let run = identity.run { return run }
        if case .over(let run) = runInquiry { return run }
        return nil
    }

    var isAwaitingRuns: Bool { if case .underWay = runInquiry { true } else { false } }

    /// Asks the runs of the client's user, if there are any, before the request in hand is looked at any closer: once it is refused its
    /// client may be gone before anybody has seen whose it was.
    /// - Parameter work: begins anew once they have answered.
    /// - Returns: whether that is awaited.
    func awaitsRuns(_ work: @escaping Step) -> Bool {
        guard case .notBegun = runInquiry, let socket = peer.socket, let number = socket.inode else { return false }
        let isBegun = RunInquiry.begin(about: number, worker.shared.runs.runs(of: socket.user), on: worker.loop) { [weak self] run in
            self?.found(run)
        }
        guard isBegun else { return false }
        runInquiry = .underWay
        keepRequest(for: work)
        return true
    }

    /// What the request in hand asks for, before anything of it is decided.
    var askedAuthority: Authority? {
        switch server.readRequest({ RequestDestination.of($0.head, $0.bytes) }) {
        case .tunnel(let authority), .url(let authority, _): authority.canonical
        case .proxyItself, .unsupportedScheme, .malformed, .malformedTunnel: nil
        }
    }

    private func found(_ run: Run?) {
        runInquiry = .over(run)
        goOn()
    }
}
