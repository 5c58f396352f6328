package import Serialization
internal import TLS

/// What challenges are answered from.
package struct AnsweringCredentials: Sendable, Hashable {
    package let credentials: Credentials
    /// Which writing of their file they are, so that a refusal counts until it is written again. Nil: a program gives them
    /// for one exchange, and judges itself whether to give them again.
    let edition: Int?

    package init(_ credentials: Credentials, edition: Int?) {
        self.credentials = credentials
        self.edition = edition
    }
}

/// The value of an Authorization field that answers a challenge, for one request to the origin that it was made for.
/// Printing it shows only the scheme.
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
