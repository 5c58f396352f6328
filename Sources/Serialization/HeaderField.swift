/// The name of a request header field that may be set or removed, in any case.
///
/// Fields of the connection or the framing (RFC 9110 section 7.6.1, RFC 9112 section 6) are refused, since they would
/// allow request smuggling. So is Host, since it determined the policy.
public struct HeaderName: Sendable, Hashable, CustomStringConvertible {
    /// The name as written.
    public let description: String
    private let folded: String

    /// - Throws: if it isn't a field name, or is reserved for the connection.
    public init(_ text: String) throws(InvalidValue) {
        guard !text.isEmpty else { throw InvalidValue("the name of a field is empty") }
        guard text.first != ":" else {
            throw InvalidValue(
                "\(text) can't be changed: it is an HTTP/2 pseudo-header field, made from the method and the URL")
        }
        guard text.utf8.allSatisfy(\.isTokenCharacter) else {
            throw InvalidValue("\"\(text)\" is not a field name; it may contain letters, digits and !#$%&'*+-.^_`|~")
        }
        folded = text.lowercased()
        description = text
        if let reason = Self.reasonAgainst(folded) { throw InvalidValue("\(text) can't be changed: \(reason)") }
    }

    private init(valid name: String) {
        description = name
        folded = name.lowercased()
    }

    static let acceptLanguage = HeaderName(valid: "Accept-Language")
    static let authorization = HeaderName(valid: "Authorization")
    static let cookie = HeaderName(valid: "Cookie")

    public static func == (one: HeaderName, other: HeaderName) -> Bool { one.folded == other.folded }

    public func hash(into hasher: inout Hasher) { hasher.combine(folded) }

    private static func reasonAgainst(_ name: String) -> String? {
        switch name {
        case "host": "it follows the URL"
        case "content-length", "transfer-encoding", "trailer": "it is part of the framing"
        case "connection", "keep-alive", "te", "upgrade", "http2-settings":
            "it is hop-by-hop, and is not forwarded"
        case "expect": "the expectation is handled for each connection"
        case _ where name.hasPrefix("proxy-"): "it is meant for a proxy, and never reaches the server"
        default: nil
        }
    }
}

/// The value of a header field, without control characters (RFC 9110 section 5.5); a secret one is never printed.
public struct HeaderValue: Sendable, Hashable, CustomStringConvertible {
    private enum Content: Hashable {
        case open(String)
        case secret(Secret)
    }
    private let content: Content

    /// - Throws: if it has a control character, or white space around it.
    public init(_ text: String, isSecret: Bool = false) throws(InvalidValue) {
        let quoted = isSecret ? "the value" : text.debugDescription
        guard !text.utf8.contains(where: { $0 < 0x20 && $0 != 9 || $0 == 0x7F }) else {
            throw InvalidValue("\(quoted) contains a line break or another control character")
        }
        let blanks: Set<Unicode.Scalar> = [" ", "\t"]
        if let first = text.unicodeScalars.first, let last = text.unicodeScalars.last,
            blanks.contains(first) || blanks.contains(last)
        {
            throw InvalidValue("\(quoted) begins or ends with white space, which is not part of a field value")
        }
        self.init(valid: text, isSecret: isSecret)
    }

    init(valid text: String, isSecret: Bool = false) { content = isSecret ? .secret(Secret(text)) : .open(text) }

    /// The value to send. For display, see `description`.
    public var text: String {
        switch content {
        case .open(let text): text
        case .secret(let secret): secret.text
        }
    }

    /// True if ``description`` masks it.
    public var isSecret: Bool {
        if case .secret = content { true } else { false }
    }

    /// The value for display: a secret is masked.
    public var description: String {
        switch content {
        case .open(let text): text
        case .secret(let secret): secret.description
        }
    }
}

/// A header field to send.
public struct HeaderField: Sendable, Hashable {
    /// The field's name.
    public let name: HeaderName
    /// The field's value.
    public let value: HeaderValue

    /// The types ensure that both are valid.
    public init(name: HeaderName, value: HeaderValue) {
        self.name = name
        self.value = value
    }
}

extension UInt8 {
    /// tchar (RFC 9110 section 5.6.2).
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(self)
        }
    }
}
