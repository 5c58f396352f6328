internal import PinproxyBundles
internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxySecurity

/// The effects of a bundle on this machine, for people and programs.
struct RehearsalReport: Encodable {
    struct Entry: Encodable {
        let pattern: String
        let file: String
        let line: Int
    }

    struct Refused: Encodable {
        let host: String
        let port: UInt16
        let cause: String
        /// Nil: the defaults decide.
        let entry: Entry?
        /// Whether the policy in force accepts it; nil: unknown.
        let isNew: Bool?

        private enum CodingKeys: String, CodingKey { case host, port, cause, entry, isNew = "new" }

        fileprivate var lines: [String] {
            let today =
                switch isNew {
                case true?: "accepted by what is in force"
                case false?: "refused by what is in force, too"
                case nil: "what is in force couldn't be asked"
                }
            let decides = entry.map { "\($0.file.printable):\($0.line): match: \($0.pattern.printable)" }
            return [
                "  \(host.printable):\(port): \(cause.printable)", "    by \(decides ?? "the defaults"); \(today)",
            ]
        }
    }

    struct Unknown: Encodable {
        let host: String
        let port: UInt16
        let cause: String
    }

    let version: Int
    let sha256: String
    /// Its signatures, versions and dates were verified.
    let verified: Bool
    /// The number of hosts that were tried.
    let hosts: Int
    let refused: [Refused]
    let unreachable: [Unknown]
    /// Hosts that there was no room for.
    let leftOut: Int
    /// Why this machine wouldn't take the bundle, or not yet.
    let remarks: [String]
    let findings: [LintFinding]

    init(
        _ bundle: PolicyBundle, verified: Bool, _ hosts: [RehearsedHost], leftOut: Int, remarks: [String],
        findings: [LintFinding]
    ) {
        (version, sha256, self.verified) = (bundle.version, bundle.digest, verified)
        self.hosts = hosts.count
        refused = hosts.compactMap { host in
            guard case .refused(let cause, let isNew) = host.verdict else { return nil }
            let entry = host.trial.entry.map { Entry(pattern: $0.pattern, file: $0.file, line: $0.line) }
            return Refused(
                host: host.trial.host.name, port: host.trial.host.port, cause: cause, entry: entry, isNew: isNew)
        }
        unreachable = hosts.compactMap { host in
            guard case .unknown(let cause) = host.verdict else { return nil }
            return Unknown(host: host.trial.host.name, port: host.trial.host.port, cause: cause)
        }
        (self.leftOut, self.remarks, self.findings) = (leftOut, remarks, findings)
    }

    /// Something would be refused that isn't known to be refused already.
    var refusesMore: Bool { refused.contains { $0.isNew != false } }

    var text: String {
        let number = refused.isEmpty ? "none" : "\(refused.count)"
        var lines = ["\(number) of \(Count(hosts, "host")) would be refused"] + refused.flatMap(\.lines)
        if !unreachable.isEmpty {
            lines.append("not reachable, so not known: \(Count(unreachable.count, "host"))")
            lines += unreachable.map { "  \($0.host.printable):\($0.port): \($0.cause.printable)" }
        }
        if leftOut > 0 { lines.append("left out: \(Count(leftOut, "host")) (--max-hosts)") }
        lines += remarks.map { "remark: \($0)" } + findings.map(\.text)
        return lines.joined(separator: "\n")
    }
}
