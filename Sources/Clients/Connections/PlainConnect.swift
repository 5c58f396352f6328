import PinproxyConfiguration
import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxySession
import PinproxyTLS
import PinproxyTransport

/// Plain HTTP inside CONNECT, as `ws://` clients and `curl --proxytunnel` use it, distinguished from TLS by the first
/// byte.
/// Requests are judged like those for `http://` URLs. A client that begins with TLS never reaches a server in the
/// clear.
extension ClientConnection {
    // MARK: Before the client has spoken

    /// Takes port 80 for plain HTTP, where the policy allows it.
    /// - Parameter route: for a client that speaks TLS.
    func beforeItSpeaks(_ route: Route) -> Route {
        guard route.authority.port == Purpose.plain.defaultPort, case .tls = route.target.layer else { return route }
        let rules = route.rules?.rules(.none)
        if let base = rules?.session.baseURL {
            return plainRoute(base.authority, for: base.isSecure ? .secure : .plain, insteadOf: route) ?? route
        }
        if rules?.request.upgradeInsecure == true {
            let authority = route.authority.onPort(Purpose.secure.defaultPort)
            return plainRoute(authority, for: .secure, insteadOf: route) ?? route
        }
        return plainRoute(route.authority, for: .plain, insteadOf: route) ?? route
    }

    /// A route with plain HTTP to the same port, if its server seems to speak that and the policy allows it.
    func plainRoute(after failure: UpstreamFailure, of tunnel: ClientTunnel) -> Route? {
        let route = tunnel.route
        guard case .tls(.tls(let error), _) = failure, error.mayBePlainHTTP, case .tls = route.target.layer,
            route.authority == tunnel.asked.canonical, route.authority.port != Purpose.secure.defaultPort
        else { return nil }
        return plainRoute(route.authority, for: .plain, insteadOf: route)
    }

    private func plainRoute(_ authority: Authority, for purpose: Purpose, insteadOf route: Route) -> Route? {
        let decision = worker.decide(authority.canonical, for: purpose, client: client(as: route.client))
        return if case .relay(let plain) = decision { plain } else { nil }
    }

    // MARK: When it speaks

    /// The client sent something after CONNECT, or ended.
    func clientSpoke() {
        var first = server.requests.withUnread { $0.isEmpty ? nil : $0[0] }
        if first == nil {
            switch server.stream.peek() {
            case .byte(let next): first = next
            case .nothing: return
            case .ended: break
            }
        }
        if let words = firstWords(first) { happened(.spoke(words)) }
    }

    private func firstWords(_ first: UInt8?) -> ConnectionState.FirstWords? {
        guard let tunnel else { return nil }
        if let first, Self.beginsRequest(first) {
            tunnel.isPlain = true
            if tunnel.route.servesTLS(for: tunnel.asked) { giveBackKept() }
            return .request
        }
        if tunnel.servesTLS { return .handshake(isServed: true) }
        guard first == Self.handshakeRecord else {
            cause = "the client began neither a request nor a TLS handshake"
            return .other
        }
        return secureRoute(of: tunnel)
    }

    /// RFC 8446 section 5.1.
    private static let handshakeRecord: UInt8 = 22

    /// Methods begin with a letter, and no TLS record does.
    private static func beginsRequest(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }

    /// The client speaks TLS, and the upstream connection doesn't: another is made and verified first.
    private func secureRoute(of tunnel: ClientTunnel) -> ConnectionState.FirstWords {
        server.stream.wantsRead = false
        server.clearDeadline()
        giveBackKept()
        switch worker.decide(tunnel.asked.canonical, for: .secure, client: client(as: tunnel.route.client)) {
        case .relay(let secure):
            guard let attempt = ConnectAttempt(to: tunnel.asked, secure, worker: worker) else { return .other }
            tunnel.route = secure
            tunnel.attempt = attempt
            tunnel.failure = nil
            return .handshake(isServed: false)
        case .refuse(let error):
            tunnel.refusal = error
            return .refusedHandshake
        case .tunnel:
            cause = Self.withdrawn
            return .other
        }
    }
}
