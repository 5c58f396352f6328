import CPinproxyOpenSSL
import Glibc
import Synchronization

/// The keys that seal session tickets (RFC 5077 section 4), never stored. A key seals for one lifetime, opens for one
/// more, and is then erased.
final class TicketKeys: Sendable {
    struct Key {
        let name: [UInt8]
        let cipherKey: [UInt8]
        let macKey: [UInt8]
    }

    private struct Ring {
        var current: Key
        var previous: Key?
        var rotatesAt: Int64
    }

    private let lifetime: Int64
    private let clock: @Sendable () -> Int64
    private let ring: Mutex<Ring>

    /// - Parameter lifetime: seconds of `clock`, which is monotonic.
    init(lifetime: Int64, clock: @escaping @Sendable () -> Int64) throws(TLSError) {
        self.lifetime = max(lifetime, 1)
        self.clock = clock
        ring = Mutex(Ring(current: try Self.makeKey(), previous: nil, rotatesAt: clock() + self.lifetime))
    }

    func sealing() -> Key? {
        let now = clock()
        return ring.withLock { ring in
            guard rotate(&ring, now) else { return nil }
            return ring.current
        }
    }

    /// The key of that name if it still opens, and whether to replace the ticket.
    func opening(_ name: UnsafeBufferPointer<UInt8>) -> (key: Key, isOld: Bool)? {
        let now = clock()
        return ring.withLock { ring in
            guard rotate(&ring, now) else { return nil }
            if ring.current.name.elementsEqual(name) { return (ring.current, false) }
            if let previous = ring.previous, previous.name.elementsEqual(name) { return (previous, true) }
            return nil
        }
    }

    /// False without random bytes: then no ticket is sealed or opened.
    private func rotate(_ ring: inout Ring, _ now: Int64) -> Bool {
        guard now >= ring.rotatesAt else { return true }
        guard let fresh = try? Self.makeKey() else { return false }
        // After two idle lifetimes the current key opens nothing.
        ring.previous = now < ring.rotatesAt + lifetime ? ring.current : nil
        ring.current = fresh
        ring.rotatesAt = now + lifetime
        return true
    }

    private static func makeKey() throws(TLSError) -> Key {
        var random = [UInt8](repeating: 0, count: 16 + 32 + 32)
        guard RAND_priv_bytes(&random, CInt(random.count)) == 1 else { throw .setup("no random bytes") }
        return Key(
            name: Array(random[..<16]), cipherKey: Array(random[16..<48]), macKey: Array(random[48...]))
    }
}

package func monotonicSeconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec)
}
