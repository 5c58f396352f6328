package import Security
package import TLS

/// What `pinproxy learn` asks of the running proxy, in `learn.json`. The proxy reads it at its start
/// and at SIGUSR1, and says by ``ChainHistory/obeyed`` in `chains.json` that it has done so and that the file holds
/// all that it has seen.
package struct LearnOrder: Codable, Sendable, Equatable {
    /// Tells this order from every other.
    package var id: String
    /// Record every host's chains until then; nil: only those of entries with `record: true`.
    package var until: UnixTime?
    /// Forget what was recorded.
    package var forgets: Bool

    package init(id: String, until: UnixTime? = nil, forgets: Bool = false) {
        self.id = id
        self.until = until
        self.forgets = forgets
    }

    package static func file(in directory: String) -> StateFile<LearnOrder> {
        StateFile("learn.json", in: directory)
    }

    /// The hosts that somebody visits are nobody else's business.
    package static func chains(in directory: String) -> StateFile<ChainHistory> {
        StateFile("chains.json", in: directory, mode: 0o600)
    }
}
