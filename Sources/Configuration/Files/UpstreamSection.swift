internal import FoundationEssentials
internal import PinproxyAddresses
internal import PinproxyHTTPWire
internal import PinproxySecurity
internal import PinproxySession
internal import PinproxyTLS

extension DaemonFileReader {
    /// - Parameter listen: the proxy's own addresses, which can't be a parent proxy.
    func upstream(_ section: Section, authority: AuthoritySettings, listen: [ListenAddress]) -> UpstreamSettings {
        var settings = UpstreamSettings(anchors: anchors(section, authority))
        settings.addresses = addressRules(section)
        settings.parent = section.readOptional("parent", Form(read: Self.parent))
        if let parent = settings.parent, let value = section.value("parent") {
            if let own = listen.first(where: { $0.isReached(by: parent) }) {
                section.error(
                    value,
                    "parent: \(parent.host):\(parent.port) is this proxy itself, which listens on \(own) (proxy.listen)"
                )
            } else if !settings.addresses.blocked.isEmpty {
                section.warning(
                    value,
                    "parent: a host whose name can't be looked up here is left to the parent, which may connect to "
                        + "an address that block_addresses names")
            }
        }
        section.finish()
        return settings
    }

    private func addressRules(_ section: Section) -> AddressRules {
        func read(_ key: String) -> [(value: YAMLValue, rule: AddressRules.Rule)]? {
            section.list(key)?.compactMap { value in
                section.scalar(value, key, .addressRule).map { (value, $0) }
            }
        }
        let blocked = read("block_addresses")
        let allowed = read("allow_addresses") ?? []
        if section.list("block_addresses")?.isEmpty == true, let value = section.value("block_addresses") {
            section.warning(
                value, "insecure: no address is blocked; clients reach the cloud's metadata service through the proxy")
        }
        for (value, rule) in allowed {
            if rule.coversMetadata {
                section.warning(
                    value,
                    "insecure: clients reach the cloud's metadata service, and its credentials, through the proxy")
            } else if let rules = blocked, rules.contains(where: { $0.rule == rule }) {
                section.warning(value, "allow_addresses: \(rule) is in block_addresses too; the exception wins")
            }
        }
        guard let blocked else { return AddressRules(allowed: allowed.map(\.rule)) }
        return AddressRules(blocked: blocked.map(\.rule), allowed: allowed.map(\.rule))
    }

    private func anchors(_ section: Section, _ authority: AuthoritySettings) -> TrustAnchors {
        var sets: [TrustAnchors] = []
        var files: [(value: YAMLValue, certificates: [Certificate])] = []
        func load(_ value: YAMLValue?, _ load: () throws(AnchorsError) -> TrustAnchors) {
            guard readsAnchors else { return }
            do {
                sets.append(try load())
            } catch {
                section.error(value.map(section.place) ?? Place(file: file), "trust: \(error)")
            }
        }
        if let values = section.list("trust") {
            for value in values {
                guard let name = section.scalar(value, "trust", .path) else { continue }
                if name == "system" {
                    load(value) { () throws(AnchorsError) in try TrustAnchors.system() }
                } else {
                    let path = section.findings.sources.source(FileContents.resolve(name, relativeTo: file))
                    let before = sets.count
                    load(value) { () throws(AnchorsError) in try TrustAnchors.load(system: false, files: [path]) }
                    files.append((value, sets[before...].flatMap(\.certificates)))
                }
            }
            if values.isEmpty, let value = section.value("trust") {
                section.error(value, "trust: the list is empty, so no server could be trusted; write system")
            }
        } else {
            load(nil) { () throws(AnchorsError) in try TrustAnchors.system() }
        }
        guard readsAnchors else { return TrustAnchors([]) }
        let anchors = withoutOwn(authority, TrustAnchors.all(of: sets))
        for file in files { warnOfUseless(file.certificates, among: anchors) { section.warning(file.value, $0) } }
        return anchors
    }

    /// `ca install` puts our own authorities among the system's; none may vouch for an origin.
    private func withoutOwn(_ authority: AuthoritySettings, _ anchors: TrustAnchors) -> TrustAnchors {
        let files = AuthorityFiles(
            certificate: authority.certificatePath, key: authority.privateKeyPath, state: stateDirectory)
        return files.ownCertificates.reduce(anchors) { $0.excluding($1) }
    }

    /// Warns of certificates in a file that can't vouch for any server. Skips the system's, which weren't chosen here.
    private func warnOfUseless(_ certificates: [Certificate], among anchors: TrustAnchors, warn: (String) -> Void) {
        let reasons = certificates.compactMap { uselessness(of: $0, among: anchors) }
        guard let first = reasons.first else { return }
        let listed = reasons.prefix(3).joined(separator: "; ")
        let more = reasons.count > 3 ? "; and \(reasons.count - 3) more" : ""
        warn(
            certificates.count == 1
                ? "trust: no server can be trusted by this file: \(first)"
                : "trust: no server can be trusted by \(reasons.count) of the \(certificates.count) certificates in "
                    + "this file: \(listed)\(more)")
    }

    private func uselessness(of certificate: Certificate, among anchors: TrustAnchors) -> String? {
        guard anchors.contains(certificate) else {
            return "\(certificate.subject) is the proxy's own authority, which vouches for no server"
        }
        return anchors.failure(of: certificate, at: unixTime)?.message
    }

    /// Parses `http://user:password@host:port`.
    static func parent(_ text: String) -> Result<ParentProxy, Reason> {
        let example = "write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"
        guard text.hasPrefix("http://") else {
            let what =
                text.hasPrefix("https://") ? "TLS to the parent proxy is not understood" : "it is not an http:// URL"
            return .failure(Reason("\(what); \(example)"))
        }
        var rest = text.dropFirst("http://".count)
        if rest.hasSuffix("/") { rest.removeLast() }
        var authorization: String?
        if let at = rest.lastIndex(of: "@") {
            guard let credentials = credentials(rest[..<at]) else {
                return .failure(Reason("the credentials are not USER:PASSWORD (with %XX for special characters)"))
            }
            authorization = "Basic " + Data(credentials.utf8).base64EncodedString()
            rest = rest[rest.index(after: at)...]
        }
        guard let colon = rest.lastIndex(of: ":"), rest.last != "]" else {
            return .failure(Reason("the port is missing; \(example)"))
        }
        guard let port = UInt16(rest[rest.index(after: colon)...]), port > 0 else {
            // Without a host, this text is the password.
            return .failure(Reason("the text after the last colon is not a port; \(example)"))
        }
        var host = String(rest[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard let address = IPAddress(host), address.isIPv6 else {
                return .failure(Reason("\"\(host)\" is not an IPv6 address"))
            }
            return .success(ParentProxy(host: address.description, port: port, authorization: authorization))
        }
        guard host.wholeMatch(of: /[A-Za-z0-9]([A-Za-z0-9._\-]{0,252})/) != nil else {
            return .failure(Reason("the part before the port is not a host name; \(example)"))
        }
        return .success(ParentProxy(host: host.lowercased(), port: port, authorization: authorization))
    }

    private static func credentials(_ text: Substring) -> String? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decoded = parts.compactMap(\.percentDecoded)
        guard parts.count == 2, decoded.count == 2, !decoded[0].isEmpty, !decoded[0].contains(":"),
            !decoded.joined().unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
        else { return nil }
        return decoded.joined(separator: ":")
    }
}
