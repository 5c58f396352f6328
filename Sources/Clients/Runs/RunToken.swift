import Glibc

/// Identifies requests of a run of `pinproxy exec`: 256 secret bits, sent as the password of ``user``. Never printed.
package struct RunToken: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The user name in the proxy's URL. No user of `proxy.users` can have it.
    package static let user = "pinproxy-run"
    private static let length = 64

    /// 64 hexadecimal digits.
    package let text: String

    package init() {
        var random = SystemRandomNumberGenerator()
        text = (0..<4).map { _ in
            let digits = String(UInt64.random(in: .min ... .max, using: &random), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.length, text.utf8.allSatisfy({ isxdigit(CInt($0)) != 0 }) else { return nil }
        self.text = String(text)
    }

    /// Nil for a user's name and password.
    package init?(_ credentials: Credentials) {
        guard credentials.user.elementsEqual(Self.user.utf8) else { return nil }
        self.init(String(decoding: credentials.password, as: UTF8.self))
    }

    package var description: String { "a run's token" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
