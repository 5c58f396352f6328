package import PinproxyEventLoop
package import PinproxySecurity
package import PinproxyTLS
import Synchronization

package struct ProbeFinding: Sendable {
    /// An accepting verdict, from an origin that proved its certificate's key.
    package let verdict: Verdict
    package let version: TLSVersion
}

/// Probe findings of the last minute, shared by all workers. A finding holds for the same host, port and address,
/// policy and anchors (the layer in the ``OriginKey``), and parent proxy. Failures aren't kept.
package final class ProbeCache: Sendable {
    package struct Place: Hashable, Sendable {
        package let origin: OriginKey
        package let address: SocketAddress
    }

    private struct Entry {
        let finding: ProbeFinding
        let applicationProtocols: SHA256Digest
        let found: UnixTime

        /// False after the clock was set back.
        func isFresh(at unixTime: UnixTime) -> Bool {
            found <= unixTime && unixTime < found + lifetime && unixTime < finding.verdict.validUntil
        }
    }

    package static let lifetime: Int64 = 60
    static let maximumPlaces = 1024
    /// Entries per place: an origin may choose its certificate by the protocols offered.
    static let perPlace = 8

    private let places = Mutex<[Place: [Entry]]>([:])

    package init() {}

    /// The last finding at `place` for these application protocols; nil: any.
    package func finding(for place: Place, applicationProtocols: [String]?, at unixTime: UnixTime) -> ProbeFinding? {
        let wanted = applicationProtocols.map(Self.digest)
        return places.withLock { places in
            places[place]?.last { entry in
                (wanted == nil || wanted == entry.applicationProtocols) && entry.isFresh(at: unixTime)
            }?.finding
        }
    }

    /// The evidence that a probe of `place` received beside this certificate, whatever protocols it offered.
    package func evidence(about leaf: Certificate, at place: Place, at unixTime: UnixTime) -> PeerEvidence? {
        places.withLock { places in
            places[place]?.last { $0.isFresh(at: unixTime) && $0.finding.verdict.presented.leaf == leaf }?
                .finding.verdict.evidence
        }
    }

    package func store(
        _ finding: ProbeFinding, for place: Place, applicationProtocols: [String], at unixTime: UnixTime
    ) {
        let entry = Entry(
            finding: finding, applicationProtocols: Self.digest(applicationProtocols), found: unixTime)
        places.withLock { places in
            if places[place] == nil, places.count >= Self.maximumPlaces { Self.makeRoom(in: &places, at: unixTime) }
            var entries = places[place, default: []]
            entries.removeAll { $0.applicationProtocols == entry.applicationProtocols || !$0.isFresh(at: unixTime) }
            if entries.count >= Self.perPlace { entries.removeFirst() }
            entries.append(entry)
            places[place] = entries
        }
    }

    /// Forgets origins, at any address, after a refusal.
    package func forget(where isMeant: (OriginKey) -> Bool) {
        places.withLock { places in
            for place in places.keys where isMeant(place.origin) { places[place] = nil }
        }
    }

    /// Drops what is too old, or else any place.
    private static func makeRoom(in places: inout [Place: [Entry]], at unixTime: UnixTime) {
        places = places.filter { $0.value.contains { $0.isFresh(at: unixTime) } }
        if places.count >= maximumPlaces, let victim = places.first?.key { places[victim] = nil }
    }

    /// A digest bounds the size: clients may send kilobytes of names.
    private static func digest(_ names: [String]) -> SHA256Digest {
        SHA256Digest.of(names.flatMap { Array("\($0.utf8.count) \($0)".utf8) })
    }
}
