/// A password or token. Printing it, by whatever means, shows only that there is one.
package struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The secret itself: for the one message that it is meant for.
    package let text: String

    package init(_ text: String) { self.text = text }

    package var description: String { "•••" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A name and a password, as Basic (RFC 7617) and Digest (RFC 7616) use them.
package struct Credentials: Sendable, Hashable {
    package let user: String
    package let password: Secret

    package init(user: String, password: Secret) throws(InvalidValue) {
        guard !user.isEmpty else { throw InvalidValue("the user is empty") }
        guard !user.utf8.contains(UInt8(ascii: ":")) else {
            // What follows the colon may be the password.
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

extension UInt8 {
    var isControl: Bool { self < 0x20 || self == 0x7F }
}
