package import PinproxyConfiguration
package import PinproxySecurity
package import PinproxySerialization
package import PinproxySession

extension Rehearsal {
    /// A configuration's decision about a host.
    package struct Decision: Sendable {
        package let host: Host
        private let decision: HostDecision
        private let asker: Asker

        /// - Parameter client: nil: any client that the entry admits.
        package init(_ host: Host, in snapshot: Snapshot, client: Client? = nil) {
            self.host = host
            asker = client.map { .client($0.peer) } ?? .anybody
            decision = HostDecision(host.name, port: host.port, in: snapshot)
        }

        /// Nil: the defaults decide.
        package var entry: HostEntry? { decision.entry }
        package var action: HostAction { decision.action }
        /// Who denies the host, where it is denied; nil: the defaults.
        package var denier: String? { decision.denier }
        package var policy: SecurityPolicy { decision.policy }
        private var tls: ClientTLS? { decision.tls }

        /// The refusal of a client that the entry doesn't admit; nil: it is admitted.
        package var objection: Answer? {
            guard case .notAdmitted(let peer, let entry, let clients)? = decision.refusal(of: asker) else { return nil }
            return Answer(ClientObjection(peer, entry, clients, host: host.description))
        }

        /// Nil where the host is denied.
        package var act: Act? {
            switch action {
            case .intercept: .secure(policy, tls, decision.http.protocols)
            case .verifyTunnel: .verifiedTunnel(policy)
            case .tunnel: .tunnel
            case .deny: nil
            }
        }

        /// To see the host's chain: without pins and expiry.
        package var actWithoutPins: Act {
            .secure(SecurityPolicy(requirements: policy.requirements), tls, decision.http.protocols)
        }

        package var denial: Answer { Answer(deniedBy: decision.denier, for: host) }
    }
}

extension Rehearsal {
    /// The proxy's answer to a client that gets no connection.
    package struct Answer: Sendable, CustomStringConvertible {
        package let status: Int
        /// One line, as in the reason phrase.
        package let title: String
        /// Everything, as in the body.
        package let text: String

        /// - Parameter entry: nil: the defaults decided.
        package init(_ failure: UpstreamFailure, for host: Host, entry: HostEntry? = nil) {
            self.init(failure.report(for: host.authority, by: entry?.source))
        }

        /// - Parameter entry: its place; nil: the defaults.
        package init(deniedBy entry: String?, for host: Host) {
            self.init(ProxyError.denied(host: host.description, entry: entry).report)
        }

        init(_ objection: ClientObjection) { self.init(objection.report) }

        /// - Parameter isEnforced: false: for a rule that only reports.
        package init(
            _ error: ResponseSerializationError, by source: String?, for host: Host, entry: HostEntry?,
            explainedBy explanation: ExplainCommandLine,
            isEnforced: Bool
        ) {
            self.init(
                error.report(of: host.name, by: source, entry?.source, explainedBy: explanation, isEnforced: isEnforced)
            )
        }

        package init(_ failure: BodyWorkFailure, for host: Host) {
            self.init(ProxyError.notJudged(failure, host: host.name).report)
        }

        /// - Parameter rule: the rule that asks for it, and where it is written.
        package init(_ error: RequestSerializationError, by rule: String?, for host: Host, entry: HostEntry?) {
            self.init(
                ProxyError.unserializable(
                    error, host: host.name, rule: rule ?? ProxyError.requestRules(of: entry?.location)
                ).report)
        }

        package init(ambiguousPathFor host: Host, entry: HostEntry?) {
            self.init(ProxyError.ambiguousPath(host: host.name, entry: entry?.location).report)
        }

        /// For a terminal. A long text begins with the title.
        package var description: String { text.hasPrefix(title) ? text : "\(title): \(text)" }

        private init(_ report: RefusalReport) {
            status = report.status
            title = report.title
            text = report.text
        }
    }
}
