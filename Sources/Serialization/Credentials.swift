internal import FoundationEssentials

/// A name and a password, as Basic (RFC 7617) and Digest (RFC 7616) use them.
public struct Credentials: Sendable, Hashable {
    /// The user name: not empty, without a colon or control characters.
    public let user: String
    /// The password: not empty, without control characters.
    public let password: Secret

    /// - Throws: what is wrong with one of them; it never shows the password.
    public init(user: String, password: Secret) throws(InvalidValue) {
        guard !user.isEmpty else { throw InvalidValue("the user is empty") }
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            // The text after the colon may be the password.
            throw InvalidValue("the user contains a colon, which would end the name (RFC 7617)")
        }
        guard !user.utf8.contains(where: \.isControl) else {
            throw InvalidValue("\(user.debugDescription) contains a control character")
        }
        guard !password.text.isEmpty else { throw InvalidValue("the password is empty") }
        guard !password.text.utf8.contains(where: \.isControl) else {
            throw InvalidValue("the password contains a control character")
        }
        self.user = user
        self.password = password
    }
}

extension Credentials {
    /// The value of Authorization (RFC 7617 section 2), in UTF-8.
    public var basicAuthorization: HeaderValue {
        HeaderValue(valid: "Basic " + Data("\(user):\(password.text)".utf8).base64EncodedString(), isSecret: true)
    }
}

extension UInt8 {
    var isControl: Bool { self < 0x20 || self == 0x7F }
}
