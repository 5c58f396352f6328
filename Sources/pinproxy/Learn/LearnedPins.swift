internal import PinproxyConfiguration
internal import PinproxySecurity
internal import PinproxyTLS

/// Suggests changes of the pin file from recorded chains, as a diff for a person to decide on.
///
/// - A host without an entry gets one: its leaf's key and, as the backup, its issuer's, with
///   `enforcement: report` to begin with.
/// - So does a host of a wildcard without pins: what one host shows says nothing of the others. The wildcard's other
///   keys go with it, since entries are not merged.
/// - An entry with pins gets those of a chain that met none of them, and a backup if it has only one pin.
/// - An entry without pins gets pins, to be reported on.
struct LearnedPins {
    struct Addition {
        let entry: HostEntry
        let pins: [PinEntryText.Line]
    }

    private(set) var entries: [PinEntryText] = []
    private(set) var additions: [Addition] = []
    /// Chains without a place in the pin file, with the reason.
    private(set) var remarks: [String] = []

    init(_ history: ChainHistory, snapshot: Snapshot) {
        var known: [(entry: HostEntry, chains: [ChainHistory.Chain])] = []
        for (_, host) in history.hosts.sorted(by: { $0.key < $1.key }) {
            if let entry = snapshot.entry(for: host.name, port: host.port) {
                if entry.policy.mode == .none, (try? HostPattern(entry.pattern))?.scope != .exact {
                    if entry.action.isJudged { propose(host, action: entry.action, under: entry) }
                } else if let index = known.firstIndex(where: { $0.entry === entry }) {
                    known[index].chains += host.chains
                } else {
                    known.append((entry, host.chains))
                }
            } else {
                propose(host, action: snapshot.defaultAction)
            }
        }
        for (entry, chains) in known { complete(entry, with: chains) }
    }

    var isEmpty: Bool { entries.isEmpty && additions.isEmpty }

    // MARK: A new host

    private mutating func propose(_ host: ChainHistory.Host, action: HostAction, under wildcard: HostEntry? = nil) {
        let name = host.name.contains(":") ? "[\(host.name)]" : host.name
        let pattern = host.port == 443 ? host.name : "\(name):\(host.port)"
        guard (try? HostPattern(pattern)) != nil else {
            remarks.append("\(pattern.printable) can't be the pattern of an entry")
            return
        }
        var pins = Pins()
        let position = wildcard?.policy.position ?? .any
        for chain in host.chains {
            pins.add(chain, candidates: Self.candidates(chain, position: position), mode: .publicKey)
        }
        guard !pins.lines.isEmpty else { return }
        let count = host.chains.reduce(0) { $0 + $1.count }
        let first = host.chains.map(\.first).min() ?? 0
        let last = host.chains.map(\.last).max() ?? 0
        var lines = ["\(pattern): \(Count(count, "connection")) from \(CalendarDate(first)) to \(CalendarDate(last))"]
        if host.chains.count > 1 {
            lines.append("\(host.chains.count) different chains were seen; make sure that all are the host's")
        }
        if let wildcard {
            lines.append(
                "decides in place of \(wildcard.pattern) (line \(wildcard.line)), with its other keys copied")
        }
        entries.append(
            PinEntryText(
                pattern: pattern, remarks: lines, pins: pins.lines, action: action, enforcement: .report,
                wildcard: wildcard))
    }

    // MARK: A host with an entry

    private mutating func complete(_ entry: HostEntry, with chains: [ChainHistory.Chain]) {
        guard entry.action.isJudged else { return }
        let policy = entry.policy
        let configured = Set(policy.pins.pins.map(\.description))
        let mode = policy.mode == .none ? .publicKey : policy.mode
        var pins = Pins()
        for chain in chains {
            let candidates = Self.candidates(chain, position: policy.position)
            let isMet =
                chain.matched.map(configured.contains) == true
                || candidates.contains { configured.contains($0.key) || configured.contains($0.certificate) }
            if !isMet {
                pins.add(chain, candidates: candidates, mode: mode)
            } else if configured.count == 1, policy.mode == .publicKey, let backup = candidates.dropFirst().first {
                pins.add(chain, candidates: [backup], mode: mode)
            }
        }
        let missing = pins.lines.filter { !configured.contains($0.pin) }
        if !missing.isEmpty { additions.append(Addition(entry: entry, pins: missing)) }
    }

    /// The certificates of a chain that are worth a pin where the entry lets one match.
    private static func candidates(_ chain: ChainHistory.Chain, position: PinPosition) -> [ChainHistory.Link] {
        switch position {
        case .any: Array(chain.links.prefix(2))
        case .leaf: Array(chain.links.prefix(1))
        case .issuer: Array(chain.links.dropFirst().prefix(1))
        case .root: chain.links.last.map { $0.subject == $0.issuer ? [$0] : [] } ?? []
        }
    }

    /// Lines of pins, each once, the leaves' before the others.
    private struct Pins {
        private var leaves: [PinEntryText.Line] = []
        private var others: [PinEntryText.Line] = []
        private var seen: Set<String> = []

        var lines: [PinEntryText.Line] { leaves + others }

        mutating func add(_ chain: ChainHistory.Chain, candidates: [ChainHistory.Link], mode: PinningMode) {
            for link in candidates {
                let pin = mode == .certificate ? link.certificate : link.key
                guard seen.insert(pin).inserted else { continue }
                let isLeaf = link == chain.links.first
                let subject = link.subject.isEmpty ? "no subject" : link.subject.printable
                let role = isLeaf ? "the leaf's" : link.subject == link.issuer ? "the root's" : "the issuer's, a backup"
                let line = PinEntryText.Line(
                    pin: pin,
                    remark:
                        "\(role): \(subject), until \(CalendarDate(link.notAfter)), seen \(CalendarDate(chain.last))")
                if isLeaf { leaves.append(line) } else { others.append(line) }
            }
        }
    }
}
