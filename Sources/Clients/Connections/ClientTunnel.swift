import HTTPWire
import Session
import TLS

/// A CONNECT of a client: what it asked for, and what was made of that.
final class ClientTunnel {
    /// The authority as the client wrote it: SNI, Host and the certificate that the client is shown name that.
    let asked: Authority
    /// The client's.
    let identity: ClientIdentity
    /// Where the connection leads, by the snapshot that was asked last.
    var route: Route
    /// The upstream connection that is being made.
    var attempt: ConnectAttempt?
    /// Why the first attempt failed, while plain HTTP is tried: it says more than what follows.
    var failure: UpstreamFailure?
    /// The answer for the client, if it is refused.
    var refusal: ProxyError?
    /// The TLS alert that tells it of a tunnel that was refused.
    var alert: [UInt8]?
    /// What every request inside is answered with: the origin was refused (`on_refusal: page`).
    var refusalInside: ProxyError?
    /// What the client is shown.
    var leaf: Identity?
    /// The client speaks plain HTTP inside.
    var isPlain = false
    /// The client's SNI isn't the authority: its requests are answered 421.
    var misdirectedName: String?

    /// What is known of a CONNECT before it is made.
    init(_ asked: Authority, by identity: ClientIdentity, route: Route, attempt: ConnectAttempt) {
        self.asked = asked
        self.identity = identity
        self.route = route
        self.attempt = attempt
    }

    /// Whether a client that speaks TLS is served by the route.
    var isForTLS: Bool {
        guard case .tls = route.target.layer else { return false }
        return asked.canonical == route.authority
    }

    /// Whether TLS may succeed for the client: an origin was verified, or a refusal is all that it gets.
    var servesTLS: Bool { refusalInside != nil || isForTLS }

    var passage: ConnectionState.Passage {
        switch route.target.layer {
        case .plain, .tls: .inspected
        case .tunnel: .tunnel
        case .verifiedTunnel: .verifiedTunnel
        }
    }
}
