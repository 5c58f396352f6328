import PinproxyEventLoop
import PinproxyRecords
import PinproxySession
import PinproxyTLS

/// Who can read a refusal.
enum RefusalReader {
    /// The program that the proxy serves, or the proxy's operator.
    case client
    /// Code of origins that runs in that program, such as scripts of a page. It doesn't learn the user, nor the
    /// addresses of names in this network.
    case content
}

/// The connection to a refused origin, and the client: for the 502 and the status page.
struct ConnectionAccount {
    let contact: OriginContact?
    let requester: Requester?
    let reader: RefusalReader

    init(_ contact: OriginContact?, _ requester: Requester?, for reader: RefusalReader = .client) {
        self.contact = contact
        self.requester = requester
        self.reader = reader
    }

    /// Some lines; empty: nothing is known.
    var text: String {
        var rows: [(String, String)] = []
        if let contact {
            if reader == .client {
                rows.append(("address", "\(contact.address)"))
                if let resolved = contact.resolved { rows.append(("resolved", resolved)) }
                if let source = contact.source { rows.append(("resolver", source)) }
            }
            rows.append(("TLS", contact.tls.map { "\($0)" } ?? "not negotiated"))
        }
        if let requester {
            let who = [requester.client.map { "\($0)" }, requester.traits.map { "\($0)" }].compactMap(\.self)
            if reader == .client, !who.isEmpty { rows.append(("client", who.joined(separator: ": "))) }
            rows.append(("task", "\(requester.task)"))
        }
        guard !rows.isEmpty else { return "" }
        return "The connection:\n"
            + rows.map { "  " + $0.0 + String(repeating: " ", count: 10 - $0.0.count) + $0.1 }.joined(separator: "\n")
    }
}
