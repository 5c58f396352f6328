package import PinproxyTLS

package enum PinPlace: Sendable, Hashable {
    case absent
    /// At this depth (0 is the leaf).
    case matches(depth: Int)
    /// At this depth, where the policy's position forbids it.
    case ruledOut(depth: Int)
}

extension SecurityPolicy {
    /// The distinct pins that match in this verdict, the deciding one included.
    package func matchingPins(in verdict: Verdict) -> [Pin] {
        guard verdict.isAccepted, let decisive = verdict.matchedPin else { return [] }
        let chains = [verdict.chain, verdict.trustedChain].compactMap(\.self)
        var seen = [decisive.description]
        return [decisive]
            + pins.pins.filter { pin in
                let matches =
                    chains.isEmpty
                    ? PinSet([pin]).pin(for: verdict.presented.leaf, depth: 0) != nil
                    : chains.contains { if case .matches = place(of: pin, in: $0) { true } else { false } }
                guard matches, !seen.contains(pin.description) else { return false }
                seen.append(pin.description)
                return true
            }
    }

    package func place(of pin: Pin, in chain: VerifiedChain) -> PinPlace {
        let alone = PinSet([pin])
        if let match = alone.match(in: chain, position: position) { return .matches(depth: match.depth) }
        if let match = alone.match(in: chain, position: .any) { return .ruledOut(depth: match.depth) }
        return .absent
    }
}
