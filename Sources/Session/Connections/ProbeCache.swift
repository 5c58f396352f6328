package import EventLoop
package import Security
import Synchronization
package import TLS

package struct ProbeFinding: Sendable {
    /// Accepts: what a policy refused, or whose origin didn't prove its certificate's key, is a failure.
    package let verdict: Verdict
    package let version: TLSVersion
}

/// What probes found, for a minute; shared by all workers.
///
/// Found again only for the same host, port and address, under the same policy and anchors (the layer in the
/// ``OriginKey``), by way of the same parent proxy. Failures aren't kept.
package final class ProbeCache: Sendable {
    package struct Place: Hashable, Sendable {
        package let origin: OriginKey
        package let address: SocketAddress
    }

    private struct Entry {
        let finding: ProbeFinding
        let applicationProtocols: SHA256Digest
        let found: UnixTime

        /// A clock that was set back makes nothing fresh.
        func isFresh(at unixTime: UnixTime) -> Bool {
            found <= unixTime && unixTime < found + lifetime && unixTime < finding.verdict.validUntil
        }
    }

    package static let lifetime: Int64 = 60
    static let maximumPlaces = 1024
    /// Lists of application protocols kept of one place; an origin may choose its certificate by them.
    static let perPlace = 8

    private let places = Mutex<[Place: [Entry]]>([:])

    package init() {}

    /// The last finding at `place` that offered these application protocols; nil: any.
    package func finding(for place: Place, applicationProtocols: [String]?, at unixTime: UnixTime) -> ProbeFinding? {
        let wanted = applicationProtocols.map(Self.digest)
        return places.withLock { places in
            places[place]?.last { entry in
                (wanted == nil || wanted == entry.applicationProtocols) && entry.isFresh(at: unixTime)
            }?.finding
        }
    }

    /// What a probe of `place` received beside this very certificate, whatever protocols it offered.
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

    /// Forgets origins, at any address, after one of them was refused.
    package func forget(where isMeant: (OriginKey) -> Bool) {
        places.withLock { places in
            for place in places.keys where isMeant(place.origin) { places[place] = nil }
        }
    }

    /// Drops what is too old; if that is nothing, any place.
    private static func makeRoom(in places: inout [Place: [Entry]], at unixTime: UnixTime) {
        places = places.filter { $0.value.contains { $0.isFresh(at: unixTime) } }
        if places.count >= maximumPlaces, let victim = places.first?.key { places[victim] = nil }
    }

    /// A digest, since a client may send names by the kilobyte.
    private static func digest(_ names: [String]) -> SHA256Digest {
        SHA256Digest.of(names.flatMap { Array("\($0.utf8.count) \($0)".utf8) })
    }
}
