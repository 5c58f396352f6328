import FoundationEssentials
import Glibc
import TLS

/// The place of this machine in a rollout, from 0 to 99, the same in each. With `stage: 10` a bundle is for places
/// below 10, and an entry enforces its pins there.
package struct RolloutStage {
    package let place: Int

    /// - Parameter machine: distinguishes it from others, and stays the same.
    package init(machine: String) {
        // Of 2^32 values one hundredth more or less doesn't matter.
        let digest = SHA256Digest.of(Array("pinproxy rollout \(machine)".utf8)).bytes
        place = Int(digest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) } % 100)
    }

    /// By machine-id(5), which images of machines must not share; else by the host's name.
    package static var ofThisMachine: RolloutStage {
        for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            let machine = text.prefix { !$0.isWhitespace }
            if machine.utf8.count >= 16 { return RolloutStage(machine: String(machine)) }
        }
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        return RolloutStage(
            machine: String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    package func isReached(by stage: Int?) -> Bool { stage.map { place < $0 } ?? true }
}
