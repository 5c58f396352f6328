import PinproxyConfiguration
import PinproxyEventLoop
import PinproxySecurity
import PinproxySession

/// Bytes that are carried unread, and what allowed them.
final class Relayed {
    var route: Route
    /// The address of the origin, or of the parent proxy.
    let address: SocketAddress
    /// Nil for unverified tunnels and plain HTTP.
    let verdict: Verdict?
    /// The rules' idle timeout; nil: the usual one.
    let timeout: Duration?

    init(route: Route, address: SocketAddress, verdict: Verdict?, timeout: Duration?) {
        self.route = route
        self.address = address
        self.verdict = verdict
        self.timeout = timeout
    }

    /// Only those of a tunnel's rules apply that are for all requests.
    convenience init(tunnel route: Route, address: SocketAddress, verdict: Verdict?) {
        self.init(route: route, address: address, verdict: verdict, timeout: route.rules?.rules(.none).timeout)
    }
}
