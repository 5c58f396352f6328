package import Configuration
package import Serialization
package import Session

extension Rehearsal {
    /// What a client gets in place of its connection: the words of the proxy's own response.
    package struct Answer: Sendable, CustomStringConvertible {
        package let status: Int
        /// One line, as in the reason phrase.
        package let title: String
        /// Everything, as in the body.
        package let text: String

        /// The answer where no connection could be made.
        /// - Parameter entry: the entry that decides; nil: the defaults do.
        package init(_ failure: UpstreamFailure, for host: Host, entry: HostEntry? = nil) {
            self.init(failure.report(for: host.authority, by: entry?.source))
        }

        /// The answer where the policy denies the host.
        /// - Parameter entry: where that is written; nil: in the defaults.
        package init(deniedBy entry: String?, for host: Host) {
            self.init(ProxyError.denied(host: host.description, entry: entry).report)
        }

        /// The answer where the entry is for other clients.
        init(_ objection: ClientObjection) { self.init(objection.report) }

        /// The answer in the place of a response that the rules refuse.
        /// - Parameters:
        ///   - source: the rule that decided, and where it is written.
        ///   - entry: the entry that decides; nil: the defaults do.
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
