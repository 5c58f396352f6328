import PinproxyConfiguration
import PinproxyRecords
import PinproxySecurity
import PinproxySession
import PinproxyTLS
import Synchronization

/// The configuration for ``Configuration/TestHost``: an authority of this process, trusted for nothing else, and an
/// entry for each name. One pins the key of the origin (``TestOrigin``), the other a key that doesn't exist.
package final class TestHosts: Sendable {
    /// No parent proxy, and no system roots.
    let upstream: UpstreamSettings
    private let leaves: LeafCache
    private let right: HostEntry
    private let wrong: HostEntry

    init(at unixTime: UnixTime) throws {
        let authority = try LocalAuthority.temporary(at: unixTime)
        upstream = UpstreamSettings(anchors: TrustAnchors([authority.certificate]))
        leaves = LeafCache(authority: authority, lifetime: LocalAuthority.maximumLeafLifetime)
        // All leaves of an authority have the same key.
        let key = try leaves.identity(for: .dns(TestHost.right.rawValue), now: unixTime).leaf.spkiSHA256
        right = Self.entry(for: .right, pin: key)
        wrong = Self.entry(for: .wrong, pin: SHA256Digest.of(Array("no key".utf8)))
    }

    private static func entry(for host: TestHost, pin: SHA256Digest) -> HostEntry {
        let policy = SecurityPolicy(mode: .publicKey, pins: PinSet([Pin(.spki(pin), origin: "built in")]))
        let entry = HostEntry(
            for: HostPattern(.exact, canonical: host.rawValue, port: nil), action: .intercept, policy: policy,
            file: "built in",
            line: 0, column: 0)
        entry.slot.store(EntrySlots.uncounted, ordering: .relaxed)
        return entry
    }

    /// - Parameter host: canonical.
    func entry(for host: String) -> HostEntry? {
        switch TestHost(host) {
        case .right: right
        case .wrong: wrong
        case nil: nil
        }
    }

    func identity(for host: TestHost, now: UnixTime) throws(AuthorityError) -> Identity {
        try leaves.identity(for: .dns(host.rawValue), now: now)
    }
}
