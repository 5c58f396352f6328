/// A look-up on disk that an exchange waits for.
final class CacheLookup {
    static let patienceNanoseconds: UInt64 = 2_000_000_000

    private let ended: (CacheLookup, DiskTier.Found?) -> Void
    private var isAnswered = false

    /// - Parameter ended: called once; without a finding the disk hasn't answered in time.
    init(ended: @escaping (CacheLookup, DiskTier.Found?) -> Void) { self.ended = ended }

    func answered(_ found: DiskTier.Found?) {
        guard !isAnswered else { return }
        isAnswered = true
        ended(self, found)
    }
}
