import Configuration
import EventLoop
package import Logging
import Security
import Session
import Synchronization
package import TLS

/// Keeps incidents for all workers, in `incidents.json`, and the last chain of each host that met a pin, in
/// `matched.json`, to compare them with.
package final class IncidentLedger: Sendable {
    package static let fileName = "incidents.json"
    package static let matchedFileName = "matched.json"

    private let history: KeptValue<IncidentHistory>
    private let chains: KeptValue<MatchedChains>
    private let logger: Logger
    /// What ``chains`` holds, so that a connection to a known chain takes a look-up.
    private let known = Mutex<[String: Known]>([:])
    /// Open incidents: without any, no accepted connection looks further.
    private let openCount = Atomic(0)
    private let saidFull = Atomic(false)

    private struct Known {
        let leaf: SHA256Digest
        let pin: String
        let time: UnixTime
    }

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
        openCount.store(history.value.open.count, ordering: .relaxed)
    }

    package var incidents: IncidentHistory { history.value }
    package var matched: MatchedChains { chains.value }

    // MARK: Any thread

    /// For a connection that was refused or reported.
    /// - Returns: the incident's ID.
    func note(_ sighting: Sighting, at time: UnixTime) -> String {
        let (outcome, open) = history.change { history in
            (history.record(sighting, at: time), history.incidents.values.count { $0.isOpen })
        }
        openCount.store(open, ordering: .relaxed)
        if let news = outcome.news { tell(news, of: sighting, outcome.id) }
        if outcome.evicted > 0, !saidFull.exchange(true, ordering: .relaxed) {
            logger.warning(
                "state.full",
                metadata: [
                    "file": "\(Self.fileName)",
                    "effect": "the least recent incidents make room, first those of hosts without pins",
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
        let id = Sighting.id(of: verdict.presented, at: Sighting.place(host, port))
        guard history.value.incidents[id]?.isOpen == true else { return }
        acknowledge(id, by: "pinproxy, since the policy accepts the chain now", at: time)
    }

    private func remember(_ chain: VerifiedChain, _ pin: String, at place: String, time: UnixTime) {
        let leaf = chain.leaf.sha256
        let isKnown = known.withLock { known in
            if let last = known[place], last.leaf == leaf, last.pin == pin,
                (last.time..<last.time + MatchedChains.day).contains(time)
            {
                return true
            }
            if known.count >= MatchedChains.maximumHosts, known[place] == nil { known = [:] }
            known[place] = Known(leaf: leaf, pin: pin, time: time)
            return false
        }
        if isKnown { return }
        let pem = Incident.pem(of: chain.certificates)
        chains.change { $0.record(pem, pin: pin, at: place, time: time) }
    }

    // MARK: The end of incidents

    /// - Parameter whom: who says so, in words.
    /// - Returns: the incident, if it was open.
    @discardableResult
    package func acknowledge(_ id: String, by whom: String, at time: UnixTime) -> Incident? {
        let (incident, open) = history.change { history in
            (history.acknowledge(id, by: whom, at: time), history.incidents.values.count { $0.isOpen })
        }
        openCount.store(open, ordering: .relaxed)
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

    /// - Returns: why they can't be written.
    @discardableResult
    package func save(at time: UnixTime) -> StateFileProblem? {
        if history.value.list.last.map({ $0.last < time - IncidentHistory.lifetime }) == true {
            history.change { $0.forget(at: time) }
        }
        let problem = history.save()
        return chains.save() ?? problem
    }
}
