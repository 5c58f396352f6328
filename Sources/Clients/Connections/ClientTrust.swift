import PinproxyEventLoop
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// Detects whether a client trusts the proxy's authority. One that doesn't sends an alert in the
/// handshake; or, if it checks certificates after the handshake, only ends the connection.
extension ClientConnection {
    /// Later than this after the handshake, an end has other reasons.
    private static let departureNanoseconds: UInt64 = 2_000_000_000

    enum ShownTrust {
        case no
        /// A request came, and the process at the other end is being looked for.
        case unattributed
        case yes
    }

    /// A request came inside TLS.
    func showedTrust() {
        guard case .no = shownTrust, tunnel?.securedAt != nil else { return }
        handshakeEnded()
        shownTrust = .unattributed
        if !isPeerAwaited { attributeTrust() }
    }

    private var isPeerAwaited: Bool {
        guard inquiries.isPeerLookedFor || inquiries.isPeerAsked, case .notAsked = peer.processes else { return false }
        return true
    }

    /// The process was found, or won't be.
    func attributeTrust() {
        guard case .unattributed = shownTrust else { return }
        shownTrust = .yes
        worker.shared.trust.trusts(knownClient, at: worker.loop.now)
        run?.trusts(knownClient, at: worker.loop.now)
    }

    private var knownClient: KnownClient {
        KnownClient(
            claimant: Claimant(peer, source: source), executable: peer.traits?.executable, agent: tunnel?.agent ?? .none
        )
    }

    /// The connection is closed.
    func noteDeparture() {
        attributeTrust()
        guard state.phase == .inside, case .no = shownTrust, hasLeft || server.clientHasLeft, server.requests.isEmpty,
            !worker.isDraining,
            let tunnel, let secured = tunnel.securedAt, !tunnel.isResumed,
            worker.loop.now - secured <= Self.departureNanoseconds
        else { return }
        let departure = ClientDeparture(
            client: knownClient, source: source, traits: peer.traits, authority: tunnel.route.authority)
        run?.left(departure)
        worker.departures.note(departure)
    }

    /// Whether a client may have ended a handshake because of its trust, without an alert.
    static func hasVanished(_ error: StreamError) -> Bool {
        switch error {
        case .socket: true
        case .tls(let failure):
            switch failure.kind {
            case .unexpectedEOF, .system: true
            default: false
            }
        case .stream: false
        }
    }
}
