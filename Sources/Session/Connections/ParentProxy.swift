package import HTTPWire

/// A proxy that every connection to an origin goes through (`upstream.parent`).
package struct ParentProxy: Sendable, Hashable {
    /// A name, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// The value of Proxy-Authorization. Not readable outside of this room: what may carry it is the CONNECT to the
    /// parent (``ParentReply``), and a request over a connection that has a ``ParentHop``.
    let authorization: String?

    /// - Parameter authorization: the value of Proxy-Authorization, e.g. `Basic dTpw`; nil without credentials.
    package init(host: String, port: UInt16, authorization: String? = nil) {
        self.host = host
        self.port = port
        self.authorization = authorization
    }

    package var hasCredentials: Bool { authorization != nil }
}

/// Says of a connection that it ends at the parent proxy: requests over it are the parent's to read, with the whole
/// URL and the parent's credentials.
///
/// Only a connection that was dialled so has one (``UpstreamConnection/parentHop``). A tunnel through the parent ends at the
/// origin, and so there is nothing to write the credentials from (architecture rule 9).
package struct ParentHop: Sendable {
    /// The credentials, as a change to a request's head; none where the parent wants none.
    package let edits: HeadEdits

    init(_ parent: ParentProxy) {
        var edits = HeadEdits()
        if let authorization = parent.authorization { edits.append(.set(authorization), "Proxy-Authorization") }
        self.edits = edits
    }
}
