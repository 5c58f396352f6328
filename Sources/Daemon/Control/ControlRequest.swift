import Clients
import EventLoop
package import HTTPWire

/// A request to the control socket or the admin port, as far as its resources are told apart.
package struct ControlRequest {
    let method: Method
    /// The segments of the path: `/tasks/7/cancel` has three.
    package let path: [String]
    let query: [String: String]
    let door: ControlDoor
    /// The values of fields, as they are written; nil where there is none.
    var host: String?
    var authorization: String?
    var accept: String?
    /// `Sec-Fetch-Site`: what the page that has the browser ask is to this port.
    var fetchSite: String?

    /// Nil if the target is no path.
    package init?(_ view: borrowing RequestView, through door: ControlDoor) {
        guard case .origin = view.head.targetForm else { return nil }
        self.init(view.head.method, view.head.target.text(in: view.bytes), through: door)
        host = view.head.first(.host)?.text(in: view.bytes)
        accept = view.head.first(.accept)?.text(in: view.bytes)
        authorization = view.head.first(.authorization)?.text(in: view.bytes)
        for field in view.head.fields where field.name.text(in: view.bytes).lowercased() == "sec-fetch-site" {
            // Of several values none is believed.
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

/// By which way a request came.
package enum ControlDoor: Sendable, CustomStringConvertible {
    /// The control socket: its clients are the daemon's own user and root.
    case socket(ControlPeer)
    /// The admin port, with the client's address where it has one.
    case port(client: String)

    /// Who asks, for people.
    package var description: String {
        switch self {
        case .socket(let peer): "\(peer)"
        case .port(let client): "\(client), over the admin port"
        }
    }
}

/// Who asks over the control socket, by the kernel's word.
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
