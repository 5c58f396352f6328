internal import PinproxyHTTPWire
internal import PinproxySecurity
internal import PinproxySerialization
internal import PinproxySession

// The forms of the values in `session`, `request`, `response` and `rules`.

extension Form {
    /// The form of a type of the Serialization module that reads itself from text.
    static func checked(_ make: @escaping (String) throws(InvalidValue) -> Value) -> Form {
        Form { text in Result { () throws(InvalidValue) in try make(text) }.mapError { Reason("\($0)") } }
    }
}

extension Form where Value: CaseIterable & RawRepresentable<String> {
    static var anyCase: Form { .word(Value.allCases.map { ($0.rawValue, $0) }) }
}

extension Form where Value == HTTPProtocol {
    /// By the ALPN name (RFC 7301 section 6).
    static var httpProtocol: Form {
        Form { text in
            switch text {
            case "h2c": return .failure(Reason("h2c, HTTP/2 in the clear, is not spoken; write h2 or http/1.1"))
            case "http/1.0", "h3": return .failure(Reason("\"\(text)\" can't be offered; write h2 or http/1.1"))
            default: return Form.word(HTTPProtocol.allCases.map { ($0.rawValue, $0) }).read(text)
            }
        }
    }
}

extension Section {
    /// A list of versions of HTTP, best first; null stands for the usual ones. Nil (with an error) if it is wrong.
    /// - Parameter peer: the peer that gets the offer, for messages.
    func protocols(_ value: YAMLValue, _ key: String, to peer: String) -> [HTTPProtocol]? {
        if value.isNull { return HTTPProtocol.usual }
        guard let list = elements(value, key) else { return nil }
        if list.isEmpty {
            error(value, "\(key): the list is empty, so \(peer) would be offered nothing; write h2, http/1.1, or both")
            return nil
        }
        var read: [HTTPProtocol] = []
        var isRight = true
        for element in list {
            guard let name = scalar(element, key, .httpProtocol) else {
                isRight = false
                continue
            }
            if read.contains(name) {
                error(element, "\(key): \(name) is written twice")
                isRight = false
            }
            read.append(name)
        }
        return isRight ? read : nil
    }
}

extension Form where Value == HostPattern {
    static var hostPattern: Form {
        Form { text in
            Result { () throws(HostPatternError) in try HostPattern(text) }.mapError { Reason("\($0)") }
        }
    }
}

extension Form where Value == PathPattern {
    static var pathPattern: Form {
        Form { text in
            Result { () throws(PathPatternError) in try PathPattern(text) }
                .mapError { Reason("\(text.debugDescription): \($0)") }
        }
    }
}

extension Form where Value == BaseURL {
    /// `https://host:port/path/`. Without credentials, query and fragment, which a base can't hand on.
    static var baseURL: Form {
        Form { text in
            let example = "write a URL such as https://api.example.com/v2/"
            guard let scheme = ["https://", "http://"].first(where: { text.lowercased().hasPrefix($0) }) else {
                return .failure(Reason("\(text.debugDescription) is not an https:// or http:// URL; \(example)"))
            }
            let isSecure = scheme == "https://"
            let rest = text.dropFirst(scheme.count)
            let written = rest.prefix { !"/?#\\".contains($0) }
            let path = rest[written.endIndex...]
            if written.contains("@") {
                return .failure(Reason("credentials don't belong in the URL; see session.credentials"))
            }
            if path.contains("?") { return .failure(Reason("a base has no query; remove the ? and the text after it")) }
            if path.contains("#") { return .failure(Reason("a fragment (#…) is never sent; leave it out")) }
            guard path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\\\"<>^`{|}".utf8.contains($0) }) else {
                return .failure(Reason("the path contains what must be percent-encoded"))
            }
            let isDotted = path.split(separator: "/").contains {
                [".", ".."].contains($0.lowercased().replacing("%2e", with: "."))
            }
            if isDotted { return .failure(Reason("the path contains . or ..; write the path without them")) }
            return Authority.parse(String(written), defaultPort: isSecure ? 443 : 80)
                .map { BaseURL(isSecure: isSecure, authority: $0, path: path.isEmpty ? "/" : String(path)) }
                .mapError { Reason("\(text.debugDescription): \($0)") }
        }
    }
}
