import EventLoop
import Records
import Session
import TLS

/// The connection to a refused origin, and the client: for the 502 and the status page.
struct ConnectionAccount {
    let contact: OriginContact?
    let requester: Requester?

    init(_ contact: OriginContact?, _ requester: Requester?) {
        self.contact = contact
        self.requester = requester
    }

    /// Some lines; empty: nothing is known.
    var text: String {
        var rows: [(String, String)] = []
        if let contact {
            rows.append(("address", "\(contact.address)"))
            if let resolved = contact.resolved { rows.append(("resolved", resolved)) }
            if let source = contact.source { rows.append(("resolver", source)) }
            rows.append(("TLS", contact.tls.map { "\($0)" } ?? "not negotiated"))
        }
        if let requester {
            let who = [requester.client.map { "\($0)" }, requester.traits.map { "\($0)" }].compactMap(\.self)
            if !who.isEmpty { rows.append(("client", who.joined(separator: ": "))) }
            rows.append(("task", "\(requester.task)"))
        }
        guard !rows.isEmpty else { return "" }
        return "The connection:\n"
            + rows.map { "  " + $0.0 + String(repeating: " ", count: 10 - $0.0.count) + $0.1 }.joined(separator: "\n")
    }
}

/// The same for programs, beside the problem.
struct ConnectionDetails: Encodable {
    let address: String
    let resolved: [String]?
    let resolver: String?
    let tlsVersion: String?
    let cipher: String?
    let tlsGroup: String?

    private enum CodingKeys: String, CodingKey {
        case address, resolved, resolver, cipher
        case tlsVersion = "tls_version"
        case tlsGroup = "tls_group"
    }

    init(_ contact: OriginContact) {
        address = "\(contact.address)"
        resolved = contact.answer.map { $0.addresses.map(\.description) }
        resolver = contact.source
        tlsVersion = contact.tls.map { "\($0.version)" }
        cipher = contact.tls?.cipher
        tlsGroup = contact.tls?.group
    }
}

struct ClientDetails: Encodable {
    let address: String?
    let uid: UInt32?
    let user: String?
    let process: Int32?
    let program: String?
    let unit: String?

    init(_ requester: Requester) {
        address = requester.client.map { "\($0)" }
        uid = requester.traits?.user
        user = requester.traits?.userName
        process = requester.traits?.process
        program = requester.traits?.executable
        unit = requester.traits?.unit
    }
}
