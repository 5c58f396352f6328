import HTTPWire

/// A request to the control socket, as far as its resources are told apart.
struct ControlRequest {
    let method: Method
    /// The segments of the path: `/tasks/7/cancel` has three.
    let path: [String]
    /// The parameters of the query, as they are written.
    let query: [String: String]
    let peer: ControlPeer

    /// Nil if the target is no path.
    init?(_ view: borrowing RequestView, from peer: ControlPeer) {
        guard case .origin = view.head.targetForm else { return nil }
        self.init(view.head.method, view.head.target.text(in: view.bytes), from: peer)
    }

    init(_ method: Method, _ target: String, from peer: ControlPeer) {
        self.method = method
        self.peer = peer
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
