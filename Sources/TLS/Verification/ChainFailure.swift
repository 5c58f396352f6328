/// Why an attempt to build a chain failed, and where.
struct ChainFailure: Error {
    let failure: VerificationFailure
    /// Leaf first; may be empty.
    var chain: [Certificate] = []
    /// The authority with the broken or unreadable name constraints.
    var culprit: Certificate?

    static let outOfMemory = ChainFailure(failure: .outOfMemory)
}
