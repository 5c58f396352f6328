import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTLS

/// A CONNECT of a client, and its route.
final class ClientTunnel {
    /// As the client wrote it: SNI, Host and the client's certificate name it.
    let asked: Authority
    let identity: ClientIdentity
    let agent: ClientAgent
    var route: Route
    var attempt: ConnectAttempt?
    /// Why the first attempt failed, while plain HTTP is tried.
    var failure: UpstreamFailure?
    /// The refusal sent to the client.
    var refusal: ProxyError?
    /// The TLS alert for a refused tunnel.
    var alert: [UInt8]?
    /// The answer to every request inside: the origin was refused (`on_refusal: page`).
    var refusalInside: ProxyError?
    /// The certificate presented to the client.
    var leaf: Identity?
    var isPlain = false
    /// When the TLS handshake with the client was done; nil: not yet.
    var securedAt: MonotonicTime?
    /// Its TLS session was one of an earlier connection.
    var isResumed = false
    /// The client's SNI isn't the authority: its requests are answered 421.
    var misdirectedName: String?

    init(_ asked: Authority, by identity: ClientIdentity, _ agent: ClientAgent, route: Route, attempt: ConnectAttempt) {
        self.asked = asked
        self.identity = identity
        self.agent = agent
        self.route = route
        self.attempt = attempt
    }

    /// Whether TLS may succeed for the client: an origin was verified, or it only gets a refusal.
    var servesTLS: Bool { refusalInside != nil || route.servesTLS(for: asked) }

    var passage: ConnectionState.Passage {
        switch route.target.layer {
        case .plain, .tls: .inspected
        case .tunnel: .tunnel
        case .verifiedTunnel: .verifiedTunnel
        }
    }
}
