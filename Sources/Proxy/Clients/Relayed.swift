import EventLoop
import Security

/// What is carried unread: by which route it was let begin, where to, and on what verdict.
final class Relayed {
    var route: Route
    /// Of the origin, or of the parent proxy.
    let address: SocketAddress
    /// nil where nobody asked for one: a tunnel that isn't verified, or plain HTTP.
    let verdict: Verdict?

    init(route: Route, address: SocketAddress, verdict: Verdict?) {
        self.route = route
        self.address = address
        self.verdict = verdict
    }
}
