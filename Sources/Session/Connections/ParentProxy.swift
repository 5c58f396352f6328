package import PinproxyHTTPWire

/// A proxy that every connection to an origin goes through (`upstream.parent`).
package struct ParentProxy: Sendable, Hashable {
    /// A name, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// Proxy-Authorization. Internal to Session: only ``ParentReply`` and a ``ParentHop`` may send it.
    let authorization: String?

    /// - Parameter authorization: the value of Proxy-Authorization, e.g. `Basic dTpw`.
    package init(host: String, port: UInt16, authorization: String? = nil) {
        self.host = host
        self.port = port
        self.authorization = authorization
    }

    package var hasCredentials: Bool { authorization != nil }
}

/// Marks a connection that ends at the parent proxy: its requests carry the whole URL and the parent's credentials. A
/// tunnel through the parent has no such mark, and can't leak them (architecture rule 9).
package struct ParentHop: Sendable {
    /// The credentials, as an edit of a request's head; empty if the parent wants none.
    package let edits: HeadEdits

    init(_ parent: ParentProxy) {
        var edits = HeadEdits()
        if let authorization = parent.authorization { edits.append(.set(authorization), "Proxy-Authorization") }
        self.edits = edits
    }
}
