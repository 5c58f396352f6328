import Clients
import Configuration
import EventLoop
import HTTPWire
import LocalPeers
import Session
import TLS

/// Whether a run may resolve a name. A query leaves the machine and may carry a message. So the policy judges the name
/// first, as it judges a request for the host.
enum RunNameRuling: Equatable {
    case lookUp
    /// The proxy answers for the host itself.
    case own
    /// The proxy refuses the host to this run, whatever its addresses are.
    case refused
    /// No request can be made for a host of this name.
    case unfit

    /// The ports that `--transparent` redirects to the proxy, and the protocol at each.
    private static let purposes: [(port: UInt16, purpose: Purpose)] = [(443, .secure), (80, .plain)]

    /// - Parameters:
    ///   - name: as a name server was asked for it.
    ///   - user: who has begun the run. Which process asks isn't known.
    ///   - isLetIn: whether the run's requests are let in (`proxy.users`).
    init(_ name: String, ofUser user: UInt32, isLetIn: Bool, in snapshot: Snapshot) {
        guard case .success(let authority) = Authority.parse(name, defaultPort: 443), authority.port == 443, !authority.isIPAddress else {
            self = .unfit
            return
        }
        let host = authority.canonical.host
        if TestHost(host) != nil {
            self = .own
            return
        }
        let peer = ClientPeer(LocalSocket(user: user, inode: nil))
        let isRefused = !isLetIn || Self.purposes.allSatisfy { port, purpose in
            let decision = HostDecision(host, port: port, in: snapshot)
            let layer = decision.layer(for: purpose, to: ServerName(host: host), upstream: snapshot.upstream, asker: .client(peer))
            return if case .failure = layer { true } else { false }
        }
        self = isRefused ? .refused : .lookUp
    }
}
