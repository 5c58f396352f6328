package import TLS

/// A policy's answer about one chain, with what it compared.
package struct Verdict: Sendable {
    package enum Outcome: Sendable {
        case accepted
        case refused(Refusal)
    }

    package internal(set) var outcome: Outcome
    let host: ServerName?
    /// The chain that a pin matched in, else the one to the anchors; nil if none was verified or needed.
    package let chain: VerifiedChain?
    /// The chain to the trust anchors, if checked: ``chain``, unless that ends at a pinned certificate before.
    package let trustedChain: VerifiedChain?
    package let presented: PresentedChain
    /// What it brought beside, once ``SecurityPolicy/confirm(_:with:at:)`` has seen it.
    package internal(set) var evidence: PeerEvidence?
    package internal(set) var matchedPin: Pin?
    /// Where the pin matched: 0 is the leaf.
    package internal(set) var matchedDepth: Int?
    /// Set where the connection goes on only because `enforcement` is `report`: what would have been said.
    package internal(set) var report: Refusal?
    /// The first instant at which it no longer holds, by a certificate, an OCSP response, a revocation list, or pins
    /// that expire and deny.
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
