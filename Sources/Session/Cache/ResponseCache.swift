import Synchronization

/// The stored responses of all workers (RFC 9111).
package final class ResponseCache: Sendable {
    /// A response takes at most a twentieth of the store, as in AFNetworking.
    private static let largestPart = 20

    package let memory: MemoryStore
    private let onDisk = Mutex<DiskTier?>(nil)
    package let objections = StorageObjections()
    private let confirmations = Mutex<Set<CacheKey>>([])
    /// The most confirmations in the background at a time; beyond it a stale response stays unconfirmed.
    private static let mostConfirmations = 64

    package struct Counts: Sendable {
        package var results: [CacheResult: Int] = [:]
        /// Bytes of bodies served without an origin.
        package var savedBytes = 0
        package var stored = 0

        package init() {}
    }

    private let sizes: Mutex<CacheSizes>
    private let results = CacheResult.allCases.map { _ in Counter() }
    private let savedBytes = Counter()
    private let stored = Counter()

    private final class Counter: Sendable {
        let value = Atomic<Int>(0)
    }

    package init(_ sizes: CacheSizes = CacheSizes()) {
        memory = MemoryStore(limit: sizes.memory)
        self.sizes = Mutex(sizes)
    }

    /// Changes the sizes.
    package func resize(to sizes: CacheSizes) {
        memory.resize(to: sizes.memory)
        self.sizes.withLock { $0 = sizes }
    }

    /// Nil: no entry has a cache on disk.
    package var disk: DiskTier? {
        get { onDisk.withLock { $0 } }
        set { onDisk.withLock { $0 = newValue } }
    }

    /// Bytes of the longest body that is stored.
    func longestBody(_ store: CacheRules.Store) -> Int {
        (store == .disk ? sizes.withLock { $0.disk } : memory.limit) / Self.largestPart
    }

    /// - Parameter arrival: of its body.
    func store(_ response: StoredResponse, for key: CacheKey, from arrival: Arrival) {
        if memory.insert(response, for: key, from: arrival) { countStored() }
    }

    func countStored() { stored.value.add(1, ordering: .relaxed) }

    /// Replaces a stored response by the confirmed one, if it is still there.
    func confirm(_ response: StoredResponse, insteadOf old: StoredResponse, for key: CacheKey) {
        if case .file = response.body {
            disk?.confirm(response)
        } else {
            memory.replace(old, with: response, for: key)
        }
    }

    func remove(_ response: StoredResponse, for key: CacheKey) {
        if case .file(let body) = response.body { disk?.remove(body) } else { memory.remove(response, for: key) }
    }

    /// Removes all responses of a URL.
    func remove(_ key: CacheKey) {
        memory.remove(key)
        disk?.remove(key)
    }

    func count(_ result: CacheResult, saved: Int) {
        guard let index = CacheResult.allCases.firstIndex(of: result) else { return }
        results[index].value.add(1, ordering: .relaxed)
        if saved > 0 { savedBytes.value.add(saved, ordering: .relaxed) }
    }

    package var counts: Counts {
        var counts = Counts()
        for (result, counter) in zip(CacheResult.allCases, results) {
            counts.results[result] = counter.value.load(ordering: .relaxed)
        }
        counts.savedBytes = savedBytes.value.load(ordering: .relaxed)
        counts.stored = stored.value.load(ordering: .relaxed)
        return counts
    }

    // MARK: Confirmations in the background

    /// Whether the caller must ask the origin, since no other request does. End with ``endConfirmation(of:)``.
    func beginConfirmation(of key: CacheKey) -> Bool {
        confirmations.withLock { $0.count < Self.mostConfirmations && $0.insert(key).inserted }
    }

    func endConfirmation(of key: CacheKey) { confirmations.withLock { _ = $0.remove(key) } }
}
