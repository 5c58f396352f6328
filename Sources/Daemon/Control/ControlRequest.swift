import PinproxyClients
import PinproxyEventLoop
package import PinproxyHTTPWire
import PinproxyLocalPeers

/// A request to the control socket or the admin port.
package struct ControlRequest {
    let method: Method
    /// The segments of the path: `/tasks/7/cancel` has three.
    package let path: [String]
    let query: [String: String]
    let door: ControlDoor
    /// Field values as written; nil: none.
    var host: String?
    var authorization: String?
    var accept: String?
    /// `Sec-Fetch-Site`: how the asking page is related to this port.
    var fetchSite: String?

    package init?(_ view: borrowing RequestView, through door: ControlDoor) {
        guard case .origin = view.head.targetForm else { return nil }
        self.init(view.head.method, view.head.target.text(in: view.bytes), through: door)
        host = view.head.first(.host)?.text(in: view.bytes)
        accept = view.head.first(.accept)?.text(in: view.bytes)
        authorization = view.head.first(.authorization)?.text(in: view.bytes)
        for field in view.head.fields where field.name.text(in: view.bytes).lowercased() == "sec-fetch-site" {
            // Several values: none is trusted.
            fetchSite = (fetchSite.map { $0 + ", " } ?? "") + field.value.text(in: view.bytes)
        }
    }

    init(_ method: Method, _ target: String, through door: ControlDoor) {
        self.method = method
        self.door = door
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = parts[0].split(separator: "/").map(String.init)
        var query: [String: String] = [:]
        for pair in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            query[String(sides[0])] = sides.count > 1 ? String(sides[1]) : ""
        }
        self.query = query
    }
}

/// How a request came.
package enum ControlDoor: Sendable, CustomStringConvertible {
    /// The control socket, for the daemon's own user and root.
    case socket(ControlPeer)
    /// The admin port, with the client's address if known.
    case port(client: String)

    package var description: String {
        switch self {
        case .socket(let peer): "\(peer)"
        case .port(let client): "\(client), over the admin port"
        }
    }
}

/// A client of the control socket, by the kernel's data.
package struct ControlPeer: Sendable, CustomStringConvertible {
    private let user: UInt32
    private let process: Int32

    init(_ peer: UnixSocket.Peer) {
        user = peer.user
        process = peer.process
    }

    /// `root (user 0, process 4711)`
    package var description: String {
        let place = process > 0 ? "user \(user), process \(process)" : "user \(user)"
        return UserName.of(user).map { "\($0) (\(place))" } ?? place
    }
}
