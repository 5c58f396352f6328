package import Configuration
package import Security
package import Serialization
package import Session

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

extension Rehearsal {
    /// What a client gets in place of its connection: the words of the proxy's own response.
    package struct Answer: Sendable, CustomStringConvertible {
        package let status: Int
        /// One line, as in the reason phrase.
        package let title: String
        /// Everything, as in the body.
        package let text: String

        /// The answer where no connection could be made. `entry` decides; nil: the defaults do.
        package init(_ failure: UpstreamFailure, for host: Host, entry: HostEntry? = nil) {
            self.init(failure.report(for: host.authority, by: entry?.source))
        }

        /// The answer where the policy denies the host. `entry` says where; nil: in the defaults.
        package init(deniedBy entry: String?, for host: Host) {
            self.init(ProxyError.denied(host: host.description, entry: entry).report)
        }

        /// The answer where the entry is for other clients.
        init(_ objection: ClientObjection) { self.init(objection.report) }

        /// The answer in the place of a response that the rules refuse, by the rule and its place.
        package init(_ error: ResponseSerializationError, by source: String?, for host: Host, entry: HostEntry?) {
            self.init(ProxyError.unacceptable(error, source: source, host: host.name, entry?.source).report)
        }

        /// The answer that replaces a response that couldn't be judged.
        package init(_ failure: BodyWorkFailure, for host: Host) {
            self.init(ProxyError.notJudged(failure, host: host.name).report)
        }

        /// The answer to a request that the rules can't write.
        package init(_ error: RequestSerializationError, for host: Host, entry: HostEntry?) {
            self.init(ProxyError.unserializable(error, host: host.name, entry: entry?.location).report)
        }

        /// The answer to a request whose path leads to different rules, by the ways to read it.
        package init(ambiguousPathFor host: Host, entry: HostEntry?) {
            self.init(ProxyError.ambiguousPath(host: host.name, entry: entry?.location).report)
        }

        /// For a terminal: the text, which begins with the title where it is long.
        package var description: String { text.hasPrefix(title) ? text : "\(title): \(text)" }

        private init(_ report: RefusalReport) {
            status = report.status
            title = report.title
            text = report.text
        }
    }
}
