import HTTPWire

/// What a request to the proxy asks for, by the form of its target (RFC 9112 section 3.2).
enum RequestDestination {
    /// `CONNECT host:port`.
    case tunnel(Authority)
    /// `GET http://host/…` or `GET https://host/…`.
    case url(Authority, Purpose)
    /// `GET /…`: someone takes the proxy for a web server.
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

    /// What is wrong with a CONNECT whose Host is malformed: it repeats the target, about which more can be said.
    static func targetDefect(
        behind error: WireError, _ request: RequestHead, _ bytes: Span<UInt8>
    ) -> ConnectTargetDefect? {
        guard error.code == .invalidHost, request.method == .connect,
            case .failure(let defect) = Authority.parse(bytes.extracting(request.target.offsets), defaultPort: nil)
        else { return nil }
        return ConnectTargetDefect(request.target, bytes, defect)
    }

    /// What of a request inside a CONNECT is not for the authority that CONNECT named: its Host, or the URL of its
    /// target if it has one (architecture rule 4). nil: all of it is.
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
