/// Why an attempt to build a chain failed, and how far it had come.
struct ChainFailure: Error {
    let failure: VerificationFailure
    /// Leaf first; empty if not even that was looked at.
    var chain: [Certificate] = []
    /// The authority whose name constraints are broken, or can't be understood.
    var culprit: Certificate?

    static let outOfMemory = ChainFailure(failure: .outOfMemory)
}
