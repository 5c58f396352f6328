import PinproxyHTTPWire

/// The destination of a request to the proxy, by the form of its target (RFC 9112 section 3.2).
enum RequestDestination {
    /// `CONNECT host:port`.
    case tunnel(Authority)
    /// `GET http://host/…` or `GET https://host/…`.
    case url(Authority, Purpose)
    /// `GET /…`: for a web server.
    case proxyItself
    case unsupportedScheme(ShownText)
    case malformed(AuthorityError)
    case malformedTunnel(ConnectTargetDefect)

    static func of(_ request: RequestHead, _ bytes: Span<UInt8>) -> RequestDestination {
        switch request.targetForm {
        case .authority:
            switch Authority.parse(bytes.extracting(request.target.offsets), defaultPort: nil) {
            case .success(let authority): return .tunnel(authority)
            case .failure(let error): return .malformedTunnel(ConnectTargetDefect(request.target, bytes, error))
            }
        case .origin, .asterisk: return .proxyItself
        case .absolute(let target):
            let purpose: Purpose
            switch target.scheme {
            case .http: purpose = .plain
            case .https: purpose = .secure
            case .other: return .unsupportedScheme(ShownText(request.target.text(in: bytes)))
            }
            switch Authority.parse(bytes.extracting(target.authority.offsets), defaultPort: purpose.defaultPort) {
            case .success(let authority): return .url(authority, purpose)
            case .failure(let error): return .malformed(error)
            }
        }
    }

    /// The defect of a CONNECT with a malformed Host, which repeats the target.
    static func targetDefect(
        behind error: WireError, _ request: RequestHead, _ bytes: Span<UInt8>
    ) -> ConnectTargetDefect? {
        guard error.code == .invalidHost, request.method == .connect,
            case .failure(let defect) = Authority.parse(bytes.extracting(request.target.offsets), defaultPort: nil)
        else { return nil }
        return ConnectTargetDefect(request.target, bytes, defect)
    }

    /// Nil: Host and URL agree with CONNECT's authority (architecture rule 4).
    static func disagreement(
        of request: RequestHead, _ bytes: borrowing Span<UInt8>, with authority: Authority, for purpose: Purpose
    ) -> Misdirection.Source? {
        let port = purpose.defaultPort
        if let host = request.host, !authority.matches(bytes.extracting(host.offsets), defaultPort: port) {
            return .host(host)
        }
        switch request.targetForm {
        case .origin, .asterisk: return nil
        case .authority: return .connect
        case .absolute(let target):
            guard target.scheme == purpose.scheme else { return .scheme }
            let agrees = authority.matches(bytes.extracting(target.authority.offsets), defaultPort: port)
            return agrees ? nil : .url(target.authority)
        }
    }
}

/// Why a CONNECT's target is not `host:port` (RFC 9110 section 9.3.6). User information and queries aren't repeated.
package struct ConnectTargetDefect: Sendable, CustomStringConvertible {
    package let description: String

    init(_ target: ByteRange, _ bytes: Span<UInt8>, _ error: PinproxyHTTPWire.AuthorityError) {
        let came = ShownText(target.text(in: bytes))
        let url = AbsoluteTarget.split(target, in: bytes)
        let wanted = url.flatMap { Self.authority(of: $0, bytes) } ?? Self.withPort(target, bytes, error)
        let reason = url == nil ? error.description : "that is a URL"
        description = "CONNECT takes host:port, such as \(wanted ?? "example.com:443"), but \"\(came)\" came: \(reason)"
    }

    /// The URL's `host:port`; nil if it may be part of user information.
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

    private static func withPort(
        _ target: ByteRange, _ bytes: Span<UInt8>, _ error: PinproxyHTTPWire.AuthorityError
    ) -> String? {
        if case .unbracketedIPv6(let meant) = error { return meant }
        guard error == .missingPort else { return nil }
        return try? Authority.parse(target.text(in: bytes), defaultPort: 443).get().description
    }
}
