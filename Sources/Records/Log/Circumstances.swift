import PinproxyEventLoop
package import PinproxySession

/// Under which circumstances an origin was judged, as far as they are known.
package struct Circumstances: Sendable {
    package let contact: OriginContact?
    package let requester: Requester?
    /// Of a tunnel: how the origin was judged, in the log's words.
    package let verification: String?

    package init(_ contact: OriginContact? = nil, _ requester: Requester? = nil, verification: String? = nil) {
        self.contact = contact
        self.requester = requester
        self.verification = verification
    }
}
