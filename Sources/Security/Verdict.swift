package import TLS

/// A policy's answer about one chain, with what it compared.
package struct Verdict: Sendable {
    package enum Outcome: Sendable {
        case accepted
        case refused(Refusal)
    }

    package let outcome: Outcome
    /// The chain that verification built: the one a pin matched in, else the one the anchors vouch
    /// for. nil if there is none: verification failed, or the policy didn't ask for it.
    package let chain: VerifiedChain?
    /// What the peer sent.
    package let presented: PresentedChain
    package let matchedPin: Pin?
    /// Where the pin matched: 0 is the leaf.
    package let matchedDepth: Int?
    /// Set where the connection goes on only because `enforcement` is `report`: what would have been said.
    package let report: Refusal?
    /// The first instant at which it no longer holds: a certificate of the chain has ended, or the pins
    /// have and deny. What was accepted without a chain holds forever.
    package let validUntil: UnixTime

    package var isAccepted: Bool {
        if case .accepted = outcome { true } else { false }
    }

    package var refusal: Refusal? {
        if case .refused(let refusal) = outcome { refusal } else { nil }
    }

    /// What the handshake is to be told: OpenSSL makes the alert from it.
    package var peerVerdict: PeerVerdict {
        refusal.map { .reject(x509Code: $0.x509Code) } ?? .accept
    }

    /// The certificate that the pin matched.
    package var matchedCertificate: Certificate? {
        guard let matchedDepth else { return nil }
        return chain.map { $0.certificates[matchedDepth] } ?? presented.leaf
    }
}
