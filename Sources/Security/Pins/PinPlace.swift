package import TLS

/// Where a pin is found in a chain that verified.
package enum PinPlace: Sendable, Hashable {
    case absent
    /// At this depth (0 is the leaf), where it may match.
    case matches(depth: Int)
    /// At this depth, where the policy's position doesn't let it match.
    case ruledOut(depth: Int)
}

extension SecurityPolicy {
    /// Looks for one of the policy's pins, whichever of them decided.
    package func place(of pin: Pin, in chain: VerifiedChain) -> PinPlace {
        let alone = PinSet([pin])
        if let match = alone.match(in: chain, position: position) { return .matches(depth: match.depth) }
        if let match = alone.match(in: chain, position: .any) { return .ruledOut(depth: match.depth) }
        return .absent
    }
}
