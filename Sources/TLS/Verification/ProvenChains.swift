import Synchronization

/// Chains verified with one set of anchors: equal questions get the same answer while all certificates are valid, which
/// saves a seventh of a new connection. Failures aren't kept, nor anything with revocation lists, which change.
final class ProvenChains: Sendable {
    /// The input of a verdict, besides the anchors and the time.
    struct Question: Hashable {
        let presented: [SHA256Digest]
        let name: ServerName?
        let wildcards: WildcardRule
        let allowsPartialChain: Bool
        let maximumLeafLifetime: Int64?

        /// Nil with revocation lists.
        init?(_ presented: PresentedChain, _ options: VerificationOptions) {
            guard options.revocationLists?.isEmpty ?? true else { return nil }
            self.presented = presented.certificates.map(\.sha256)
            name = options.name
            wildcards = options.wildcards
            allowsPartialChain = options.allowsPartialChain
            maximumLeafLifetime = options.maximumLeafLifetime
        }
    }

    /// More names than most machines request between restarts; a chain takes some 10 KiB.
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
            // Any one: it will be verified again.
            if chains.count >= Self.limit, chains[question] == nil, let some = chains.keys.first { chains[some] = nil }
            chains[question] = chain
        }
    }
}
