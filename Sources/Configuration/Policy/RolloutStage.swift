import PinproxyTLS

/// The place of this machine in a rollout, from 0 to 99, the same in each. With `stage: 10` a bundle is for places
/// below 10, and an entry enforces its pins there.
package struct RolloutStage {
    package let place: Int

    /// - Parameter machine: distinguishes it from others, and stays the same.
    package init(machine: String) {
        // The hundredths of 2^32 values are equal enough.
        let digest = SHA256Digest.of(Array("pinproxy rollout \(machine)".utf8)).bytes
        place = Int(digest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) } % 100)
    }

    package static var ofThisMachine: RolloutStage { RolloutStage(machine: MachineIdentity.text) }

    package func isReached(by stage: Int?) -> Bool { stage.map { place < $0 } ?? true }
}
