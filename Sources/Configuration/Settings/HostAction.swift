/// What is done with a host (`action` in pins.yaml).
package enum HostAction: String, Sendable, CaseIterable {
    /// The proxy ends TLS on both sides, and the policy decides.
    case intercept
    /// Bytes pass through untouched; the client's own TLS decides.
    case tunnel
    /// Bytes pass through untouched, once the policy has accepted what the server shows.
    case verifyTunnel = "verify-tunnel"
    /// Refused.
    case deny

    /// The policy looks at the server's certificates.
    package var isJudged: Bool { self == .intercept || self == .verifyTunnel }
}
