import Configuration
import EventLoop
import Security
import Session

/// What is carried unread: by which route it was let begin, where to, and on what verdict.
final class Relayed {
    var route: Route
    /// Of the origin, or of the parent proxy.
    let address: SocketAddress
    /// nil where nobody asked for one: a tunnel that isn't verified, or plain HTTP.
    let verdict: Verdict?
    /// Without a byte in either direction, by the rules; nil: as for hosts without rules.
    let timeout: Duration?

    init(route: Route, address: SocketAddress, verdict: Verdict?, timeout: Duration?) {
        self.route = route
        self.address = address
        self.verdict = verdict
        self.timeout = timeout
    }

    /// A tunnel, whose requests nobody sees: of the rules, what is written for all of them.
    convenience init(tunnel route: Route, address: SocketAddress, verdict: Verdict?) {
        self.init(route: route, address: address, verdict: verdict, timeout: route.rules?.rules(.none).timeout)
    }
}
