import HTTPWire

/// Why the target of a CONNECT is not `host:port` (RFC 9110 section 9.3.6), in words that say what came and
/// what to write. Neither user information nor a query is repeated.
package struct ConnectTargetDefect: Sendable, CustomStringConvertible {
    package let description: String

    init(_ target: ByteRange, _ bytes: Span<UInt8>, _ error: HTTPWire.AuthorityError) {
        let came = ShownText(target.text(in: bytes))
        let url = AbsoluteTarget.split(target, in: bytes)
        let wanted = url.flatMap { Self.authority(of: $0, bytes) } ?? Self.withPort(target, bytes, error)
        let reason = url == nil ? error.description : "that is a URL"
        description = "CONNECT takes host:port, such as \(wanted ?? "example.com:443"), but \"\(came)\" came: \(reason)"
    }

    /// What the URL means by `host:port`; nil if that may be a part of its user information.
    private static func authority(of url: AbsoluteTarget, _ bytes: Span<UInt8>) -> String? {
        let port: UInt16
        switch url.scheme {
        case .http: port = 80
        case .https: port = 443
        case .other: return nil
        }
        guard !url.pathAndQuery.text(in: bytes).contains("@") else { return nil }
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
