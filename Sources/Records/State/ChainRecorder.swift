package import Logging
import PinproxyConfiguration
package import PinproxySecurity
package import PinproxyTLS
import Synchronization

/// Records verified chains of entries with `record`, and while the proxy learns, of all hosts.
package final class ChainRecorder: Sendable {
    private let history: KeptValue<ChainHistory>
    private let logger: Logger
    /// The end of learning; in the past: it is off.
    private let until = Atomic<UnixTime>(.min)
    private let saidFull = Atomic(false)

    package static let fileName = "chains.json"

    /// Private: it shows which hosts are visited.
    package static func file(in directory: String) -> StateFile<ChainHistory> {
        StateFile(fileName, in: directory, mode: 0o600)
    }

    package init(directory: String, logger: Logger) {
        history = KeptValue(ChainHistory(), in: Self.file(in: directory), logger: logger)
        self.logger = logger
    }

    /// Any thread; once for each connection to an origin.
    func note(_ verdict: Verdict, of host: String, port: UInt16, entry: HostEntry?, at time: UnixTime) {
        guard entry?.records == true || time < until.load(ordering: .relaxed) else { return }
        // Without verification the chain is untrusted.
        guard verdict.isAccepted, let chain = verdict.chain, entry?.policy.allowsInvalidCertificates != true else {
            return
        }
        let links = ChainHistory.links(of: chain)
        let isRoom = history.change {
            $0.record(links, matching: verdict.matchedPin, of: host, port: port, at: time)
        }
        if !isRoom, !saidFull.exchange(true, ordering: .relaxed) {
            logger.warning(
                "state.full",
                metadata: [
                    "file": "\(Self.fileName)",
                    "effect": "\(ChainHistory.maximumHosts) hosts are recorded; no more are",
                ])
        }
    }

    // MARK: On the main loop

    /// Continues the learning of an earlier process.
    package func start(at time: UnixTime) { learn(until: history.value.learnsUntil, at: time) }

    /// Obeys, and writes the recorded chains.
    package func obey(_ order: LearnOrder, at time: UnixTime) -> Result<LearnReport, StateFileProblem> {
        if order.forgets {
            history.change { $0.forget() }
            saidFull.store(false, ordering: .relaxed)
            logger.notice("learn.forget")
        }
        switch order.time {
        case .unchanged: break
        case .until(let end): learn(until: end, at: time)
        case .stop: learn(until: nil, at: time)
        }
        if let problem = history.save(forced: true) { return .failure(problem) }
        return .success(LearnReport(until: learnsUntil(at: time)))
    }

    /// Until when every host's chains are recorded; nil: they aren't.
    package func learnsUntil(at time: UnixTime) -> UnixTime? {
        let end = until.load(ordering: .relaxed)
        return end > time ? end : nil
    }

    private func learn(until end: UnixTime?, at time: UnixTime) {
        if history.value.learnsUntil != end { history.change { $0.learnsUntil = end } }
        let before = until.exchange(end ?? .min, ordering: .relaxed)
        if let end, end > time, end != before {
            logger.notice("learn.begin", metadata: ["until": "\(end)", "hosts": "all"])
        } else if before > time, end ?? .min <= time {
            logger.notice("learn.end")
        }
    }

    /// Logs the end of learning; called from time to time.
    package func review(at time: UnixTime) {
        let end = until.load(ordering: .relaxed)
        if end != .min, end <= time { learn(until: nil, at: end - 1) }
    }

    package func save() { history.save() }
}

/// An order of `pinproxy learn`, which always writes the recorded chains.
package struct LearnOrder: Sendable, Equatable {
    package enum Time: Sendable, Equatable {
        case unchanged
        /// Record every host's chains until then.
        case until(UnixTime)
        /// Record only entries with `record: true`.
        case stop
    }

    package var time: Time
    package var forgets: Bool

    package init(_ time: Time = .unchanged, forgets: Bool = false) {
        self.time = time
        self.forgets = forgets
    }

    /// From the parameters of `POST /learn`; nil: an invalid one.
    package init?(_ query: [String: String]) {
        guard query.keys.allSatisfy(["until", "stop", "forget"].contains) else { return nil }
        forgets = query["forget"] != nil
        if let text = query["until"] {
            guard let until = UnixTime(text), until > 0, query["stop"] == nil else { return nil }
            time = .until(until)
        } else {
            time = query["stop"] == nil ? .unchanged : .stop
        }
    }

    package var target: String {
        var parameters: [String] = []
        switch time {
        case .unchanged: break
        case .until(let time): parameters.append("until=\(time)")
        case .stop: parameters.append("stop")
        }
        if forgets { parameters.append("forget") }
        return "/learn" + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
    }
}

/// The answer of `POST /learn`.
package struct LearnReport: Codable, Sendable, Equatable {
    /// Until when every host's chains are recorded; nil: they aren't.
    package let until: UnixTime?
}
