internal import Foundation
internal import Security
internal import Session
internal import TLS

extension DaemonFileReader {
    func upstream(_ section: Section, authority: AuthoritySettings) -> UpstreamSettings {
        var settings = UpstreamSettings(anchors: anchors(section, authority))
        settings.parent = section.readOptional("parent", Form(read: Self.parent))
        if let values = section.list("block_addresses") {
            let words = AddressClass.allCases.map { ($0.rawValue, $0) }
            settings.blockedAddresses = Set(values.compactMap { section.scalar($0, "block_addresses", .word(words)) })
            if values.isEmpty, let value = section.value("block_addresses") {
                section.warning(
                    value,
                    "insecure: no address is blocked; clients reach the cloud's metadata service through the proxy")
            }
        }
        section.finish()
        return settings
    }

    private func anchors(_ section: Section, _ authority: AuthoritySettings) -> TrustAnchors {
        var certificates: [Certificate] = []
        func load(_ value: YAMLValue?, _ load: () throws(AnchorsError) -> TrustAnchors) {
            do {
                certificates += try load().certificates
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
                    let path = FileContents.resolve(name, relativeTo: file)
                    load(value) { () throws(AnchorsError) in try TrustAnchors.load(system: false, files: [path]) }
                }
            }
            if values.isEmpty, let value = section.value("trust") {
                section.error(value, "trust: the list is empty, so no server could be trusted; write system")
            }
        } else {
            load(nil) { () throws(AnchorsError) in try TrustAnchors.system() }
        }
        let anchors = TrustAnchors(certificates)
        // `ca install` puts our own authority among the system's; it must not vouch for an origin.
        guard case .success(let bytes) = FileContents.read(authority.certificatePath, limit: 1 << 20),
            let own = try? Certificate(derOrPEM: bytes)
        else { return anchors }
        return anchors.excluding(own)
    }

    /// Parses `http://user:password@host:port`.
    static func parent(_ text: String) -> Result<ParentProxy, Reason> {
        let example = "write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"
        guard text.hasPrefix("http://") else {
            let what = text.hasPrefix("https://") ? "TLS to the parent proxy is not understood" : "it is no http:// URL"
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
            // Without its host, what stands here is the password.
            return .failure(Reason("what follows the last colon is not a port; \(example)"))
        }
        var host = String(rest[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard let address = HostAddress(host), address.isIPv6 else {
                return .failure(Reason("\"\(host)\" is not an IPv6 address"))
            }
            return .success(ParentProxy(host: address.description, port: port, authorization: authorization))
        }
        guard host.wholeMatch(of: /[A-Za-z0-9]([A-Za-z0-9._\-]{0,252})/) != nil else {
            return .failure(Reason("what stands before the port is not a host name; \(example)"))
        }
        return .success(ParentProxy(host: host.lowercased(), port: port, authorization: authorization))
    }

    private static func credentials(_ text: Substring) -> String? {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let decoded = parts.compactMap { String($0).removingPercentEncoding }
        guard parts.count == 2, decoded.count == 2, !decoded[0].isEmpty, !decoded[0].contains(":"),
            !decoded.joined().unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
        else { return nil }
        return decoded.joined(separator: ":")
    }
}
