package import Logging
import PinproxyConfiguration
package import PinproxyEventLoop
import PinproxySecurity
import PinproxySession
package import PinproxyTLS
import Synchronization

/// Keeps incidents for all workers, in `incidents.json`, and the last chains of each host that met a pin, in
/// `matched.json`, to compare them with.
///
/// Its locks (of the history, the chains and the clock) are leaves: none is taken while another is held, so they need
/// no order, and nothing is hashed, encoded or written within them.
package final class IncidentLedger: Sendable {
    package static let fileName = "incidents.json"
    package static let matchedFileName = "matched.json"

    private let history: KeptValue<IncidentHistory>
    private let chains: KeptValue<MatchedChains>
    private let logger: Logger
    /// Open incidents, written within the history's lock: without any, no accepted connection looks further.
    private let openCount = Atomic(0)
    private let saidFull = Atomic(false)
    private let clock = Mutex(SteadyClock())

    /// Private: they show who connects where.
    package static func file(in directory: String) -> StateFile<IncidentHistory> {
        StateFile(fileName, in: directory, mode: 0o600)
    }

    package static func matchedFile(in directory: String) -> StateFile<MatchedChains> {
        StateFile(matchedFileName, in: directory, mode: 0o600)
    }

    package init(directory: String, logger: Logger) {
        history = KeptValue(IncidentHistory(), in: Self.file(in: directory), logger: logger)
        chains = KeptValue(MatchedChains(), in: Self.matchedFile(in: directory), logger: logger)
        self.logger = logger
        openCount.store(history.value.openCount, ordering: .relaxed)
    }

    private func change<R: Sendable>(_ body: (inout IncidentHistory) -> R) -> R {
        history.change { history in
            // Within the lock: of two threads the later one's number stays.
            defer { openCount.store(history.openCount, ordering: .relaxed) }
            return body(&history)
        }
    }

    package var incidents: IncidentHistory { history.value }
    package var matched: MatchedChains { chains.value }

    // MARK: Any thread

    /// For a connection that was refused or reported.
    /// - Returns: the incident's ID.
    func note(_ sighting: Sighting, at time: UnixTime) -> String {
        let outcome = change { $0.record(sighting, at: time) }
        if let news = outcome.news { tell(news, of: sighting, outcome.id) }
        if outcome.evicted > 0, !saidFull.exchange(true, ordering: .relaxed) {
            logger.warning(
                "state.full",
                metadata: [
                    "file": "\(Self.fileName)",
                    "effect":
                        "the least recent are dropped, acknowledged incidents and those of hosts without pins first",
                ])
        }
        return outcome.id
    }

    private func tell(_ news: IncidentHistory.Outcome.News, of sighting: Sighting, _ id: String) {
        var fields: Logger.Metadata = [
            "incident": "\(id)", "host": "\(sighting.host)", "port": .stringConvertible(sighting.port),
            "cause": "\(sighting.cause)",
        ]
        if let entry = sighting.entry { fields["entry"] = "\(entry.pattern)" }
        switch news {
        case .opened: fields["effect"] = "a new incident: pinproxy incidents show \(id)"
        case .reopened: fields["effect"] = "open again: it was acknowledged, and has another address or chain now"
        case .recurred: fields["effect"] = "open again: the policy had accepted the chain in between"
        case .enforced: fields["effect"] = "it was only reported so far, and is refused now"
        case .merged:
            fields["effect"] =
                "the host has presented \(IncidentHistory.chainsPerHost) chains; further ones share this incident"
        }
        logger.warning("incident.open", metadata: fields)
    }

    /// For an accepted connection: remembers its chain if a pin met it, and ends incidents about it.
    func accepted(_ verdict: Verdict, of host: String, port: UInt16, at time: UnixTime) {
        if let pin = verdict.matchedPin, let chain = verdict.chain {
            remember(chain, pin.description, at: Sighting.place(host, port), time: time)
        }
        guard openCount.load(ordering: .relaxed) > 0 else { return }
        // One that came without proof of its key stays: the host's own acceptance doesn't explain it.
        for fault in [Sighting.Fault.pin, .trust] {
            let id = Sighting.id(of: verdict.presented, at: Sighting.place(host, port), fault)
            guard history.value.incidents[id]?.isOpen == true else { continue }
            acknowledge(id, by: "pinproxy, since the policy accepts the chain now", isByPolicy: true, at: time)
        }
    }

    private func remember(_ chain: VerifiedChain, _ pin: String, at place: String, time: UnixTime) {
        let leaf = chain.leaf.sha256.hex
        if chains.value.isFresh(leaf, pin: pin, at: place, time: time) { return }
        let pem = Incident.pem(of: chain.certificates)
        chains.change { $0.record(pem, leaf: leaf, pin: pin, at: place, time: time) }
    }

    // MARK: The end of incidents

    /// - Parameters:
    ///   - whom: who acknowledged it, in words.
    ///   - isByPolicy: no person: the policy accepts the chain now.
    /// - Returns: the incident, if it was open.
    @discardableResult
    package func acknowledge(
        _ id: String, by whom: String, isByPolicy: Bool = false, at time: UnixTime
    ) -> Incident? {
        let incident = change { $0.acknowledge(id, by: whom, isByPolicy: isByPolicy, at: time) }
        guard let incident else { return nil }
        logger.notice(
            "incident.acknowledged",
            metadata: [
                "incident": "\(id)", "host": "\(incident.host)", "port": .stringConvertible(incident.port),
                "cause": "acknowledged by \(whom)",
            ])
        return incident
    }

    // MARK: On the state's thread

    /// - Parameter monotonic: the same instant.
    /// - Returns: why they can't be written.
    @discardableResult
    package func save(at time: UnixTime, _ monotonic: MonotonicTime = .now()) -> StateFileProblem? {
        if clock.withLock({ $0.isSteady(at: time, monotonic) }) { settle(at: time) }
        let problem = history.save()
        return chains.save() ?? problem
    }

    /// Most incidents that are named when several expire together.
    private static let longestList = 16

    private func settle(at time: UnixTime) {
        if chains.value.isUnsettled(at: time) { chains.change { $0.settle(at: time) } }
        guard history.value.isUnsettled(at: time) else { return }
        let forgotten = change { $0.settle(at: time) }
        guard !forgotten.isEmpty else { return }
        let named = forgotten.prefix(Self.longestList).map { "\($0.id) of \($0.place)" }.joined(separator: ", ")
        let more = forgotten.count > Self.longestList ? " and \(forgotten.count - Self.longestList) more" : ""
        logger.notice(
            "incident.forgotten",
            metadata: [
                "incidents": "\(named)\(more)",
                "cause": "not seen for \(IncidentHistory.lifetime / MatchedChains.day) days",
            ])
    }
}
