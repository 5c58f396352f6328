import PinproxyHTTPWire
import PinproxyLocalPeers
import PinproxySession

/// The run of `pinproxy exec` that a client belongs to: by its token, or as the process says that began the run, since
/// many programs send no credentials from the proxy's URL unless asked.
extension ClientRequest {
    /// Asks the runs of the client's user first: a client that is refused may close before its run was found.
    /// - Parameter step: starts over when they have answered.
    /// - Returns: whether an answer is awaited.
    func awaitsRuns(_ step: @escaping Step) -> Bool {
        guard connection.asksRuns() else { return false }
        keep(step)
        return true
    }

    /// The requested authority, before any decision.
    var askedAuthority: Authority? {
        switch server.readRequest({ RequestDestination.of($0.head, $0.bytes) }) {
        case .tunnel(let authority), .url(let authority, _): authority.canonical
        case .proxyItself, .unsupportedScheme, .malformed, .malformedTunnel: nil
        }
    }
}

extension ClientConnection {
    /// Reports refusals of the CONNECT.
    var run: Run? { tunnel?.identity.run ?? inquiries.run }

    /// - Returns: whether an answer will follow.
    func asksRuns() -> Bool {
        guard case .notBegun = inquiries.runs, let socket = peer.socket, let number = socket.inode else { return false }
        let isBegun = RunInquiry.begin(about: number, worker.shared.runs.runs(of: socket.user), on: worker.loop) {
            [weak self] run in
            guard let self else { return }
            inquiries.runs = .over(run)
            for request in requests { request.proceed() }
        }
        if isBegun { inquiries.runs = .inFlight }
        return isBegun
    }
}
