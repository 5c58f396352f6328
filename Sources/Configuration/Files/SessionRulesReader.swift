internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession

/// Ways of writing credentials that expose them.
package enum UnsafeCredentials: CaseIterable, CustomStringConvertible {
    case overHTTP, everywhere

    /// As `check` and the log say it.
    package var description: String {
        switch self {
        case .overHTTP:
            """
            insecure: allow_http answers challenges over http:// too, where anyone on the network can read the password
            """
        case .everywhere: "insecure: credentials in defaults are sent to whatever host asks for them"
        }
    }

    package var fix: String {
        switch self {
        case .overHTTP: "remove allow_http, and use the host over https://"
        case .everywhere: "write them in the entries of the hosts that are to have them"
        }
    }
}

extension RuleBlockReader {
    /// - Parameter isForAll: it holds for all requests, not for those of a path or method.
    func session(_ section: Section, isForAll: Bool) -> WrittenTable<SessionRules> {
        let table = TableReader<SessionRules>(in: section)
        table.key(.timeout, \.timeout, .duration(.milliseconds(1)...(.days(1))))
        table.key(.minimumRate, \.minimumRate, .minimumRate)
        table.key(.redirects, \.redirects, .anyCase)
        table.key(.maxRedirects, \.maxRedirects, .integer(1...100))
        table.key(.followTo, \.followTo) { value in
            table.elements(value, .followTo, .hostPattern).map { patterns in
                for (pattern, place) in zip(patterns, table.section.elements(value, "follow_to") ?? []) {
                    if let warning = pattern.publicSuffixWarning() {
                        table.section.warning(place, "follow_to: \(warning)")
                    }
                }
                return .named(patterns)
            }
        }
        table.key(.locationField, \.locationField, .bool)
        table.optional(.credentials, \.credentials) { value in
            challengeCredentials(value, in: table.section)
        }
        table.key(.resume, \.resume, .bool)
        table.key(.coalesce, \.coalesce, .bool)
        table.key(.coalesceWith, \.coalesceWith) { table.elements($0, .coalesceWith, .anyCase) }
        table.optional(.maxActive, \.maxActive, .integer(1...100_000))
        table.key(.order, \.order, .anyCase)
        table.key(.serviceType, \.serviceType, .anyCase)
        table.key(.allowWWAN, \.allowWWAN, .bool)
        table.optional(.baseURL, \.baseURL) { value in
            let url = table.section.scalar(value, "base_url", .baseURL)
            switch owner {
            case .defaults:
                table.section.error(
                    value, "base_url belongs to one host, and here it would send every host there; write it in an entry"
                )
                return nil
            case .entry(let isPinned):
                guard isPinned, url?.isSecure == false else { return url }
                table.section.error(
                    value, "base_url: the entry has pins, and http:// would bypass them; write an https:// URL")
                return nil
            }
        }
        table.key(.http, \.http) { value in
            guard let protocols = table.section.protocols(value, "http", to: "the origin") else { return nil }
            guard isForAll || protocols.contains(.http1) else {
                table.section.error(
                    value,
                    """
                    http: [h2] alone belongs to all requests, since they share connections; write it beside \"rules\", \
                    or add http/1.1
                    """
                )
                return nil
            }
            return protocols
        }
        table.optional(.ping, \.ping) { value in
            guard isForAll else {
                table.section.error(
                    value, "ping applies to all requests, since they share connections; write it next to \"rules\"")
                return nil
            }
            return table.section.scalar(value, "ping", .duration(.seconds(1)...(.hours(1))))
        }
        let written = table.finish()
        if let place = written.places[.ping], written.values.ping != nil, written.places[.http] != nil,
            !written.values.http.contains(.http2)
        {
            table.section.error(
                place, "ping: only connections of HTTP/2 are asked whether they live, and http is [http/1.1]")
        }
        return written
    }

    /// `{user: NAME, password_file: FILE, allow_http: BOOL}`.
    private func challengeCredentials(_ value: YAMLValue, in section: Section) -> ChallengeCredentials? {
        if case .defaults = owner { section.warning(value, "\(UnsafeCredentials.everywhere)") }
        var (allowsHTTP, edition) = (false, 0)
        let credentials = SecretReader(section: section, file: file).credentials(value, "credentials") { fields in
            if case .scalar(let name)? = fields.value("password_file")?.content {
                edition = FileContents.edition(FileContents.resolve(name, relativeTo: file))
            }
            allowsHTTP = fields.read("allow_http", .bool) ?? false
            guard allowsHTTP, let place = fields.value("allow_http") else { return }
            fields.warning(place, "\(UnsafeCredentials.overHTTP)")
        }
        return credentials.map { ChallengeCredentials($0, allowsHTTP: allowsHTTP, edition: edition) }
    }
}
