package import PinproxyTLS

package struct Verdict: Sendable {
    package enum Outcome: Sendable {
        case accepted
        case refused(Refusal)
    }

    package internal(set) var outcome: Outcome
    let host: ServerName?
    /// The chain with the matched pin, else the chain to the anchors; nil if no chain was verified.
    package let chain: VerifiedChain?
    /// The chain to the trust anchors, if checked: ``chain``, unless that ends at a pinned certificate before.
    package let trustedChain: VerifiedChain?
    package let presented: PresentedChain
    /// The peer's evidence, after ``SecurityPolicy/confirm(_:with:at:)``.
    package internal(set) var evidence: PeerEvidence?
    package internal(set) var matchedPin: Pin?
    /// 0 is the leaf.
    package internal(set) var matchedDepth: Int?
    /// The refusal that `enforcement: report` turned into a report.
    package internal(set) var report: Refusal?
    /// When it expires: by a certificate, an OCSP response, a revocation list, pins that expire and deny, or the start
    /// of enforcement (`enforce_from`).
    package internal(set) var validUntil: UnixTime

    package var isAccepted: Bool {
        if case .accepted = outcome { true } else { false }
    }

    package var refusal: Refusal? {
        if case .refused(let refusal) = outcome { refusal } else { nil }
    }

    /// For the handshake: OpenSSL makes the alert from it.
    package var peerVerdict: PeerVerdict {
        refusal.map { .reject(x509Code: $0.x509Code) } ?? .accept
    }
}
