import PinproxyConfiguration

/// The refusal of a client that the entry's `clients` don't admit.
package struct ClientObjection {
    private let who: String
    private let allowed: String
    private let entry: String
    private let host: String

    init(_ peer: ClientPeer, _ entry: HostEntry, _ clients: EntryClients, host: String) {
        who = peer.description(for: clients)
        allowed = clients.description
        self.entry = entry.location
        self.host = host
    }

    var report: RefusalReport {
        RefusalReport(
            status: 403, reasonPhrase: "\(host) is for other clients", proxyStatusError: "http_request_denied",
            details: "the request comes from \(who); \(entry) is for clients: {\(allowed)}",
            title: "\(host) is for other clients",
            body: [
                "The request for \(host) comes from \(who).",
                "\(entry) lets only these clients use the host: \(allowed). All that is written there has to hold, of "
                    + "each list one; unknown properties never match.",
            ], host: host)
    }
}
