import PinproxyEventLoop
package import PinproxySession
import PinproxyTLS

/// The connection to a refused origin, for programs: in the 502, and in reports to a collector. Encoders choose the
/// form of its keys.
package struct ConnectionDetails: Encodable {
    private let address: String?
    private let resolved: [String]?
    private let resolver: String?
    private let tlsVersion: String?
    private let cipher: String?
    private let tlsGroup: String?

    /// - Parameter withPlace: include the origin's address and its source; otherwise only what TLS negotiated.
    package init(_ contact: OriginContact?, withPlace: Bool = true) {
        let place = withPlace ? contact : nil
        address = place.map { "\($0.address)" }
        resolved = place?.answer.map { $0.addresses.map(\.description) }
        resolver = place?.source
        tlsVersion = contact?.tls.map { "\($0.version)" }
        cipher = contact?.tls?.cipher
        tlsGroup = contact?.tls?.group
    }
}

/// The client that requested it, as far as known.
package struct ClientDetails: Encodable {
    private let address: String?
    private let uid: UInt32?
    private let user: String?
    private let process: Int32?
    private let program: String?
    private let unit: String?

    /// The evidence for the client itself.
    package init(_ requester: Requester) {
        self.init(requester.traits, address: requester.client.map { "\($0)" }, process: requester.traits?.process)
    }

    /// For others: only what stays the same between connections.
    package init(_ traits: ClientTraits) { self.init(traits, address: nil, process: nil) }

    private init(_ traits: ClientTraits?, address: String?, process: Int32?) {
        self.address = address
        self.process = process
        uid = traits?.user
        user = traits?.userName
        program = traits?.executable
        unit = traits?.unit
    }
}
