import PinproxyHTTPWire

/// This process's names in Via, one for each authority: unguessable, and useless for tracking by origins.
struct LoopDetection: Sendable {
    private let key: (UInt64, UInt64)

    init() {
        var random = SystemRandomNumberGenerator()
        key = (random.next(), random.next())
    }

    func pseudonym(for authority: Authority) -> ViaPseudonym {
        var hasher = Hasher()
        hasher.combine(key.0)
        hasher.combine(key.1)
        hasher.combine(authority)
        return ViaPseudonym(token: UInt64(truncatingIfNeeded: hasher.finalize()))
    }
}
