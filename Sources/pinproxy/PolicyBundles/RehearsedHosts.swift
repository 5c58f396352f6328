internal import PinproxyClients
internal import PinproxyConfiguration
internal import PinproxyRecords
internal import PinproxySecurity
internal import PinproxyTLS

/// The hosts that a bundle is rehearsed with, the most important first.
///
/// They are the policy server, since a machine that refuses it gets no correction; then hosts that this machine has
/// seen and an entry decides about; hosts that entries name; other hosts that were seen.
struct RehearsedHosts {
    let hosts: [Rehearsal.Host]
    /// The number of hosts beyond the limit.
    let leftOut: Int

    /// - Parameters:
    ///   - since: what was seen last before then is left aside.
    ///   - snapshot: with the bundle.
    ///   - server: where bundles are fetched.
    ///   - limit: how many at most.
    init(
        _ chains: ChainHistory, _ pins: PinHistory, since: UnixTime, in snapshot: Snapshot, server: ServiceURL,
        limit: Int
    ) {
        let server = (try? Rehearsal.Host(name: server.host, port: server.port)).map { [$0] } ?? []
        let recorded = chains.hosts.values.compactMap { host in
            Seen(try? Rehearsal.Host(name: host.name, port: host.port), host.chains.map(\.last).max(), since: since)
        }
        // An entry without a port is asked at the usual one, unless others were visited.
        let names = Set(recorded.map(\.host.name))
        func place(_ pattern: HostPattern) -> Rehearsal.Host? {
            pattern.port != nil || !names.contains(pattern.name) ? pattern.usualHost : nil
        }
        let counted = pins.entries.compactMap { name, entry in
            Seen((try? HostPattern(name)).flatMap(place), entry.lastSeen, since: since)
        }
        let seen = (recorded + counted).sorted {
            ($1.last, $0.host.description) < ($0.last, $1.host.description)
        }.map(\.host)
        func isDecided(_ host: Rehearsal.Host) -> Bool { snapshot.entry(for: host.name, port: host.port) != nil }
        let named = snapshot.hosts.entries.compactMap { place($0.pattern) }

        var known: Set<Rehearsal.Host> = []
        let found = (server + seen.filter(isDecided) + named + seen).filter {
            // The proxy answers itself for its test hosts.
            TestHost($0.name) == nil && known.insert($0).inserted
        }
        hosts = Array(found.prefix(limit))
        leftOut = found.count - hosts.count
    }

    private struct Seen {
        let host: Rehearsal.Host
        let last: UnixTime

        /// Nil: not since then, or never.
        init?(_ host: Rehearsal.Host?, _ last: UnixTime?, since: UnixTime) {
            guard let host, let last, last >= since else { return nil }
            (self.host, self.last) = (host, last)
        }
    }
}

extension PinHistory.EntryRecord {
    /// When a connection was last judged by its pins.
    fileprivate var lastSeen: UnixTime? { (pins.values.map(\.last) + [lastMiss]).compactMap(\.self).max() }
}
