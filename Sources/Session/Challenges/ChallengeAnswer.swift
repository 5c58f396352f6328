package import PinproxySerialization
internal import PinproxyTLS

package struct AnsweringCredentials: Sendable, Hashable {
    package let credentials: Credentials
    /// The version of the password file: a refusal counts until it changes. Nil: a program's, for one exchange.
    let edition: Int?

    package init(_ credentials: Credentials, edition: Int?) {
        self.credentials = credentials
        self.edition = edition
    }
}

/// An Authorization value for one request to its origin. Printing it shows only the scheme.
package struct ChallengeAnswer: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Answers per exchange, for a server that calls every nonce stale.
    static let most = 3

    enum Proof: Sendable {
        case basic
        case digest(DigestChallenge)
    }

    /// The secret: a password, or its equivalent.
    package let value: [UInt8]
    let proof: Proof
    /// The realm of the challenge that it answers, or of the earlier one that it is taken from.
    let realm: [UInt8]
    /// Sent before any challenge, because one like it was accepted.
    let isUnasked: Bool
    let number: Int

    package var description: String {
        switch proof {
        case .basic: "Basic •••"
        case .digest(let challenge): "Digest (\(challenge.digest.rawValue)\(challenge.isSession ? "-sess" : "")) •••"
        }
    }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
