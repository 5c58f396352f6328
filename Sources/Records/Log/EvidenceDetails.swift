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

    /// - Parameter withPlace: where the origin is, and who said so; else only what TLS agreed on.
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

/// Who asked for it, as far as it is known.
package struct ClientDetails: Encodable {
    private let address: String?
    private let uid: UInt32?
    private let user: String?
    private let process: Int32?
    private let program: String?
    private let unit: String?

    /// For the client itself.
    package init(_ requester: Requester) {
        self.init(requester.traits, address: requester.client.map { "\($0)" }, process: requester.traits?.process)
    }

    /// For others: what stays the same from one connection to the next.
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
