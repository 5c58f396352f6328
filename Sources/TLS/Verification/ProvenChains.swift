import Synchronization

/// Chains that were verified up to one set of anchors: the same certificates, requested in the same way, get the same
/// answer while all are valid. That spares a seventh of a new connection to an origin.
///
/// Failures aren't kept, nor anything with revocation lists, which change.
final class ProvenChains: Sendable {
    /// What a verdict depends on, besides the anchors and the time.
    struct Question: Hashable {
        let presented: [SHA256Digest]
        let name: ServerName?
        let wildcards: WildcardRule
        let allowsPartialChain: Bool
        let maximumLeafLifetime: Int64?

        /// Nil if there are revocation lists.
        init?(_ presented: PresentedChain, _ options: VerificationOptions) {
            guard options.revocationLists?.isEmpty ?? true else { return nil }
            self.presented = presented.certificates.map(\.sha256)
            name = options.name
            wildcards = options.wildcards
            allowsPartialChain = options.allowsPartialChain
            maximumLeafLifetime = options.maximumLeafLifetime
        }
    }

    /// More names than most machines ask for between two restarts of their programs; a chain takes some 10 KiB.
    static let limit = 256

    private let chains = Mutex<[Question: VerifiedChain]>([:])

    var count: Int { chains.withLock { $0.count } }

    func chain(for question: Question, at time: UnixTime) -> VerifiedChain? {
        let chain = chains.withLock { $0[question] }
        guard let chain, chain.certificates.allSatisfy({ $0.isValid(at: time) }) else { return nil }
        return chain
    }

    func keep(_ chain: VerifiedChain, for question: Question) {
        chains.withLock { chains in
            // Whichever goes: one that is asked for again is verified again.
            if chains.count >= Self.limit, chains[question] == nil, let some = chains.keys.first { chains[some] = nil }
            chains[question] = chain
        }
    }
}
