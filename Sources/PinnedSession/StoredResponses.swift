import PinproxyEventLoop
import PinproxySession
import PinproxyTLS

extension CacheStorage {
    /// Nil: no response is stored.
    var terms: CacheTerms? {
        var rules = CacheRules()
        switch self {
        case .none: return nil
        case .memory: rules.store = .memory
        case .disk: rules.store = .disk
        }
        // All requests of a session are under the same rules, but for their policies.
        return CacheTerms(rules, identity: SHA256Digest.of([]))
    }

    func open() throws(SystemError) -> ResponseCache {
        var sizes = CacheSizes()
        switch self {
        case .none: return ResponseCache()
        case .memory(let bytes):
            sizes.memory = max(bytes, 0)
            return ResponseCache(sizes)
        case .disk(let directory, let bytes):
            sizes.disk = max(bytes, 0)
            let cache = ResponseCache(sizes)
            let disk = try DiskTier(directory: directory, limit: sizes.disk)
            disk.open(limit: sizes.disk)
            cache.disk = disk
            return cache
        }
    }
}
