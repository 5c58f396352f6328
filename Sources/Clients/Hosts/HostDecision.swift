package import Configuration
import Security
package import Session
package import TLS

/// What a configuration does with a host: decided here alone, for the proxy and for the commands that explain it.
package struct HostDecision {
    /// The entry that decides; nil: the defaults do.
    let entry: HostEntry?
    let action: HostAction
    let policy: SecurityPolicy
    /// How TLS is spoken with it, where that isn't as with most.
    let tls: ClientTLS?
    /// How origins are reached, where that isn't as the configuration says.
    let upstream: UpstreamSettings?

    package enum Refusal: Error {
        case denied
        case notAdmitted(ClientPeer, HostEntry, EntryClients)
        /// Plain HTTP can't be pinned.
        case plainToPinned(HostEntry)
    }

    /// - Parameter testHosts: nil: their names are decided about as any other.
    package init(_ host: String, port: UInt16, in snapshot: Snapshot, testHosts: TestHosts? = nil) {
        if let testHosts, let own = testHosts.entry(for: host) {
            (entry, action, policy, tls, upstream) = (own, own.action, own.policy, nil, testHosts.upstream)
            return
        }
        upstream = nil
        entry = snapshot.entry(for: host, port: port)
        action = entry?.action ?? snapshot.defaultAction
        policy = entry?.policy ?? snapshot.defaultPolicy
        tls = entry == nil ? snapshot.defaultTLS : entry?.tls
    }

    func refusal(of asker: Asker) -> Refusal? {
        guard action != .deny, let entry, let clients = entry.clients, case .client(let peer) = asker, !peer.isAdmitted(by: clients) else { return nil }
        return .notAdmitted(peer, entry, clients)
    }

    /// What runs over a connection to it.
    /// - Parameter upstream: as the configuration says, without the local authority among the anchors.
    package func layer(
        for purpose: Purpose, to name: ServerName, upstream: UpstreamSettings, asker: Asker
    ) -> Result<UpstreamTarget.Layer, Refusal> {
        if let refusal = refusal(of: asker) { return .failure(refusal) }
        let anchors = (self.upstream ?? upstream).anchors
        return switch (action, purpose) {
        case (.deny, _): .failure(.denied)
        case (.tunnel, .secure): .success(.tunnel)
        case (_, .plain):
            if let entry, entry.policy.mode != .none { .failure(.plainToPinned(entry)) } else { .success(.plain) }
        case (.intercept, .secure): .success(.tls(policy, anchors, name))
        case (.verifyTunnel, .secure): .success(.verifiedTunnel(policy, anchors, name))
        }
    }
}

extension HostEntry {
    var source: PolicySource { PolicySource(pattern: pattern, file: file, line: line) }
}
