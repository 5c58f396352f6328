import Configuration
import HTTPWire
import Security
import Session
import TLS

/// Where the requests for one authority go under one snapshot, and what decided it.
final class Route {
    let snapshot: Snapshot
    /// What decided; nil: the defaults.
    let entry: HostEntry?
    let destination: Destination
    /// What is written about exchanges with the host; nil: nothing.
    let rules: RuleLayers?
    /// Where exchanges by it are counted.
    let slot: Int
    /// Whom it is for.
    let client: Client

    /// What a route depends on besides the configuration and the authority.
    struct Client {
        let place: ClientPlace
        let asker: Asker
        /// The hops that the request has passed already, as Via has them; nil: none.
        var via: String?
    }

    init(snapshot: Snapshot, entry: HostEntry?, destination: Destination, slot: Int, client: Client) {
        self.slot = slot
        self.snapshot = snapshot
        self.entry = entry
        rules = entry == nil ? snapshot.defaultRules : entry?.rules
        self.destination = destination
        self.client = client
    }

    var authority: Authority { destination.authority }
    var target: UpstreamTarget { destination.target }
    var origin: Origin { destination.origin }
}

/// What the policy does with an authority.
enum Decision {
    case relay(Route)
    case tunnel(Route)
    case refuse(ProxyError)
}
