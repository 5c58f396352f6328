/// One challenge of a WWW-Authenticate field (RFC 9110 section 11.6.1), or the credentials of an Authorization field,
/// which have the same form: a scheme with parameters, or with one opaque text.
///
/// ```
/// Digest realm="a, b", nonce="x", qop="auth", Basic realm="a, b", Negotiate YII=
/// ```
/// holds three.
package struct Challenge: Sendable, Hashable {
    /// Most challenges of one response; further ones are ignored.
    package static let most = 64

    /// In lower case.
    package let scheme: String
    package private(set) var token68: [UInt8]?
    package private(set) var parameters = AuthParameters()

    private init(scheme: String) { self.scheme = scheme }

    /// Appends the challenges of one field value, in linear time.
    ///
    /// A challenge with a repeated parameter, more than ``AuthParameters/most``, or parameters besides an opaque text
    /// is skipped. At an ambiguity (an unclosed quote, a value without a name) the rest of the field is, too.
    package static func append(of value: Span<UInt8>, to list: inout [Challenge]) {
        var scanner = ElementScanner(value)
        var current: Challenge?
        var isWhole = true
        func finish(_ challenge: Challenge?) {
            if isWhole, let challenge, list.count < most { list.append(challenge) }
        }
        while list.count < most {
            scanner.skipSeparators(in: value)
            if scanner.isAtEnd { return finish(current) }
            if let scheme = scanner.scheme(in: value) {
                finish(current)
                current = Challenge(scheme: scheme)
                isWhole = true
                if scanner.isAtElementEnd(in: value) { continue }
                current?.token68 = scanner.token68(in: value)
                if current?.token68 != nil { continue }
            }
            guard current != nil, let pair = scanner.parameter(in: value), scanner.isAtElementEnd(in: value)
            else { return }
            if current?.token68 != nil || current?.parameters.add(pair) == false { isWhole = false }
        }
    }
}
