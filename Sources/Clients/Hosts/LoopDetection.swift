import HTTPWire

/// The names by which this process calls itself in Via, one for each authority that is asked for.
///
/// Nobody else can guess them. An origin can't tell from them what else the proxy is used for, as it could from one name for all.
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
