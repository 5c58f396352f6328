package import Serialization
internal import TLS

package struct AnsweringCredentials: Sendable, Hashable {
    package let credentials: Credentials
    /// The edition of their file, until whose change a refusal counts. Nil: a program's, for one exchange.
    let edition: Int?

    package init(_ credentials: Credentials, edition: Int?) {
        self.credentials = credentials
        self.edition = edition
    }
}

/// The value of an Authorization field for one request to its origin. Printing it shows only the scheme.
package struct ChallengeAnswer: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Answers of one exchange. A server that calls every nonce stale gets no more.
    static let most = 3

    enum Proof: Sendable {
        case basic
        case digest(DigestChallenge)
    }

    /// What is sent. Holds a password, or what stands for one.
    package let value: [UInt8]
    let proof: Proof
    /// Of the challenge that it answers, or that one like it was accepted for.
    let realm: [UInt8]
    /// It was sent before a challenge, because one like it was accepted.
    let isUnasked: Bool
    /// Which of its exchange.
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
