import HTTPWire

/// Why the target of a CONNECT is not `host:port` (RFC 9110 section 9.3.6), in words that say what came and
/// what to write. Neither user information nor a query is repeated.
struct ConnectTargetDefect: Sendable, CustomStringConvertible {
    /// Longer targets are cut.
    private static let longest = 200

    let description: String

    init(_ target: ByteRange, _ bytes: Span<UInt8>, _ error: HTTPWire.AuthorityError) {
        let came = String(Self.withoutSecrets(target.text(in: bytes)).prefix(Self.longest))
        let url = AbsoluteTarget.split(target, in: bytes)
        let wanted = url.flatMap { Self.authority(of: $0, bytes) } ?? Self.withPort(target, bytes, error)
        let reason = url == nil ? error.description : "that is a URL"
        description = "CONNECT takes host:port, such as \(wanted ?? "example.com:443"), but \"\(came)\" came: \(reason)"
    }

    private static func withoutSecrets(_ target: String) -> String {
        let target = String(target.prefix { $0 != "?" })
        let start = target.firstRange(of: "://")?.upperBound ?? target.startIndex
        let authority = target[start...].prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return target }
        return target[..<start] + "***" + target[at...]
    }

    /// What the URL means by `host:port`.
    private static func authority(of url: AbsoluteTarget, _ bytes: Span<UInt8>) -> String? {
        let port: UInt16
        switch url.scheme {
        case .http: port = 80
        case .https: port = 443
        case .other: return nil
        }
        let text = url.authority.text(in: bytes)
        let hostAndPort = text[(text.lastIndex(of: "@").map(text.index(after:)) ?? text.startIndex)...]
        return try? Authority.parse(String(hostAndPort), defaultPort: port).get().description
    }

    private static func withPort(_ target: ByteRange, _ bytes: Span<UInt8>, _ error: HTTPWire.AuthorityError) -> String? {
        if case .unbracketedIPv6(let meant) = error { return meant }
        guard error == .missingPort else { return nil }
        return try? Authority.parse(target.text(in: bytes), defaultPort: 443).get().description
    }
}
