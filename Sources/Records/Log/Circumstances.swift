import PinproxyEventLoop
package import PinproxySession

/// The known circumstances of an origin's verdict.
package struct Circumstances: Sendable {
    package let contact: OriginContact?
    package let requester: Requester?
    /// How a tunnel's origin was judged, in the log's words.
    package let verification: String?

    package init(_ contact: OriginContact? = nil, _ requester: Requester? = nil, verification: String? = nil) {
        self.contact = contact
        self.requester = requester
        self.verification = verification
    }
}
