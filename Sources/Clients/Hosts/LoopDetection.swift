import HTTPWire

/// This process's names in Via, one for each authority. Nobody can guess them, and origins can't learn from them what
/// else the proxy is used for.
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
