package import Configuration
package import Security
import Session

extension Rehearsal {
    /// What a configuration does with a host that a client asks to be connected to.
    package struct Decision: Sendable {
        package let host: Host
        /// The entry that decides; nil: the defaults do.
        package let entry: HostEntry?
        package let action: HostAction
        package let policy: SecurityPolicy
        private let tls: ClientTLS?

        package init(_ host: Host, in snapshot: Snapshot) {
            self.host = host
            entry = snapshot.entry(for: host.name, port: host.port)
            action = entry?.action ?? snapshot.defaultAction
            policy = entry?.policy ?? snapshot.defaultPolicy
            tls = entry == nil ? snapshot.defaultTLS : entry?.tls
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
