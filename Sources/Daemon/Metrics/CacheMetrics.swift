import PinproxyRecords
import PinproxySession

/// The cache's part of the metrics.
struct CacheMetrics {
    private let counts: ResponseCache.Counts
    private let stores: [StoreFigures]

    init(_ cache: ResponseCache) {
        counts = cache.counts
        stores = cache.figures
    }

    func write(to text: inout MetricsText) {
        text.family(
            "pinproxy_cache_requests", .counter, "Requests to hosts with a cache, by what it did (docs/cache.md).")
        for result in CacheResult.allCases {
            text.sample([("result", result.rawValue)], counts.results[result] ?? 0)
        }
        text.family("pinproxy_cache_saved_bytes", .counter, "Bytes of bodies that no origin had to send.")
        text.sample([], counts.savedBytes)
        text.family("pinproxy_cache_responses_stored", .counter, "Responses stored.")
        text.sample([], counts.stored)
        text.family("pinproxy_cache_responses", .gauge, "Responses that are stored.")
        for store in stores { text.sample([("store", store.store.rawValue)], store.responses) }
        text.family("pinproxy_cache_bytes", .gauge, "Bytes that they take.")
        for store in stores { text.sample([("store", store.store.rawValue)], store.bytes) }
        text.family("pinproxy_cache_limit_bytes", .gauge, "How many they may take (cache in pinproxy.yaml).")
        for store in stores { text.sample([("store", store.store.rawValue)], store.limit) }
    }
}
