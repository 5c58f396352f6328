package import Security

/// What is done with a host (`action` in pins.yaml).
package enum HostAction: String, Sendable, CaseIterable {
    /// The proxy ends TLS on both sides, and the policy decides.
    case intercept
    /// Bytes pass through untouched; the client's own TLS decides.
    case tunnel
    /// Refused.
    case deny
}

/// One entry of the pin file. A class, so that a look-up hands out a reference and copies nothing.
package final class HostEntry: Sendable {
    package let action: HostAction
    /// What decides where the action is to intercept; without pins elsewhere.
    package let policy: SecurityPolicy
    /// As it was written, for people.
    package let pattern: String
    package let file: String
    package let line: Int

    /// `FILE:LINE`.
    package var location: String { "\(file):\(line)" }

    package init(action: HostAction, policy: SecurityPolicy, pattern: String, file: String, line: Int) {
        self.action = action
        self.policy = policy
        self.pattern = pattern
        self.file = file
        self.line = line
    }
}
