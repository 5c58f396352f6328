package import Configuration
package import Security
import Session

extension Rehearsal {
    /// What a configuration does with a host that a client asks to be connected to.
    package struct Decision: Sendable {
        package let host: Host
        private let decision: HostDecision
        private let asker: Asker

        /// - Parameter client: who asks; nil: somebody who may use the entry.
        package init(_ host: Host, in snapshot: Snapshot, client: Client? = nil) {
            self.host = host
            asker = client.map { .client($0.peer) } ?? .anybody
            decision = HostDecision(host.name, port: host.port, in: snapshot)
        }

        /// The entry that decides; nil: the defaults do.
        package var entry: HostEntry? { decision.entry }
        package var action: HostAction { decision.action }
        package var policy: SecurityPolicy { decision.policy }
        private var tls: ClientTLS? { decision.tls }

        /// What the client is told if the entry is for others; nil: it may use it.
        package var objection: Answer? {
            guard case .notAdmitted(let peer, let entry, let clients)? = decision.refusal(of: asker) else { return nil }
            return Answer(ClientObjection(peer, entry, clients, host: host.description))
        }

        /// Nil where the host is denied.
        package var act: Act? {
            switch action {
            case .intercept: .secure(policy, tls)
            case .verifyTunnel: .verifiedTunnel(policy)
            case .tunnel: .tunnel
            case .deny: nil
            }
        }

        /// To see what the host shows, whatever is done with it: the same but for pins and expiry.
        package var actWithoutPins: Act { .secure(SecurityPolicy(requirements: policy.requirements), tls) }

        /// What a client is told where the host is denied.
        package var denial: Answer { Answer(deniedBy: entry?.location, for: host) }
    }
}
