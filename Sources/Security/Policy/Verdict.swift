package import TLS

/// A policy's answer about one chain, with what it compared.
package struct Verdict: Sendable {
    package enum Outcome: Sendable {
        case accepted
        case refused(Refusal)
    }

    package internal(set) var outcome: Outcome
    /// The name that was asked for, if any.
    let host: ServerName?
    /// The chain that verification built: the one a pin matched in, else the one the anchors vouch
    /// for. nil if there is none: verification failed, or the policy didn't ask for it.
    package let chain: VerifiedChain?
    /// The chain to the trust anchors, where they were asked: ``chain``, if that doesn't end at a pinned
    /// certificate before.
    package let trustedChain: VerifiedChain?
    /// What the peer sent.
    package let presented: PresentedChain
    /// What it brought beside, once ``SecurityPolicy/confirm(_:with:at:)`` has seen it.
    package internal(set) var evidence: PeerEvidence?
    package internal(set) var matchedPin: Pin?
    /// Where the pin matched: 0 is the leaf.
    package internal(set) var matchedDepth: Int?
    /// Set where the connection goes on only because `enforcement` is `report`: what would have been said.
    package internal(set) var report: Refusal?
    /// The first instant at which it no longer holds: a certificate that it needs has ended, an OCSP response
    /// or a revocation list is out of date, or the pins have expired and deny. What was accepted without any
    /// of these holds forever.
    package internal(set) var validUntil: UnixTime

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
}
