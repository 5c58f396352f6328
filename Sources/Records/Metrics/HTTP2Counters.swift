import PinproxyHTTP2
import PinproxySession

/// Counts what HTTP/2 peers did to their connections.
package struct HTTP2Counters: Sendable {
    package enum Peer: String, CaseIterable, Sendable {
        case client, origin

        fileprivate var place: Int { self == .client ? 0 : 1 }
    }

    private struct Counts {
        var floods: [HTTP2Flood: UInt64] = [:]
        /// By the code's name: those of IANA's registry, and one for all others.
        var goAways: [String: UInt64] = [:]
        var broken: UInt64 = 0
    }

    private var counts = InlineArray<2, Counts>(repeating: Counts())

    mutating func count(_ notice: HTTP2Notice, of peer: Peer) {
        switch notice {
        case .flood(let flood): counts[peer.place].floods[flood, default: 0] += 1
        case .broke: counts[peer.place].broken += 1
        case .goAway(let code, _): counts[peer.place].goAways[code.isRegistered ? "\(code)" : "other", default: 0] += 1
        }
    }

    /// All kinds of floods in the order of their names.
    package func floods(of peer: Peer) -> [(name: String, count: UInt64)] {
        HTTP2Flood.allCases.map { ($0.rawValue, counts[peer.place].floods[$0] ?? 0) }.sorted { $0.0 < $1.0 }
    }

    /// Connections ended for a breach of the protocol.
    package func broken(by peer: Peer) -> UInt64 { counts[peer.place].broken }

    /// Received GOAWAY frames by code, in the order of the codes' names.
    package func goAways(of peer: Peer) -> [(code: String, count: UInt64)] {
        counts[peer.place].goAways.map { ($0.key, $0.value) }.sorted { $0.0 < $1.0 }
    }

    mutating func add(_ other: HTTP2Counters) {
        for place in counts.indices {
            counts[place].floods.merge(other.counts[place].floods) { $0 + $1 }
            counts[place].goAways.merge(other.counts[place].goAways) { $0 + $1 }
            counts[place].broken += other.counts[place].broken
        }
    }
}
