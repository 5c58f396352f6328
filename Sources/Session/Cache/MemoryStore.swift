import Synchronization

/// Stored responses in memory, of all workers: one copy of each.
///
/// Keys are spread over parts with a lock each, which is held for a look-up. A part that is full drops the URLs that
/// weren't used for longest, down to 60 of 100, as AFNetworking's image cache does.
package final class MemoryStore: Sendable {
    private static let parts = 8
    private static let keptPercent = 60

    private final class Part: Sendable {
        let state = Mutex(ResponseShelf())
    }

    private let all = (0..<parts).map { _ in Part() }
    private let partLimit: Atomic<Int>
    /// The memory of all bodies that aren't released yet.
    let account = MemoryAccount()

    /// - Parameter limit: bytes of memory.
    package init(limit: Int) { partLimit = Atomic(limit / Self.parts) }

    package var limit: Int { partLimit.load(ordering: .relaxed) * Self.parts }

    /// Changes the limit; the next response evicts what no longer fits.
    package func resize(to limit: Int) { partLimit.store(limit / Self.parts, ordering: .relaxed) }

    private func part(of key: CacheKey) -> Part { all[Int(UInt(bitPattern: key.hashValue) % UInt(Self.parts))] }

    /// The responses for the key, the latest first.
    func responses(for key: CacheKey) -> [StoredResponse] {
        part(of: key).state.withLock { state in
            guard let place = state.index[key] else { return [] }
            state.use(place)
            return state.places[place]?.responses ?? []
        }
    }

    /// Stores a response, and replaces the one for the same requests.
    /// - Parameter arrival: of its body.
    /// - Returns: false: it is too large; the URL was removed meanwhile; or slow clients hold as much as the store may.
    func insert(_ response: StoredResponse, for key: CacheKey, from arrival: Arrival) -> Bool {
        let limit = partLimit.load(ordering: .relaxed)
        guard response.size <= limit, account.bytes <= 2 * self.limit else { return false }
        return part(of: key).state.withLock { state in
            guard arrival.isWanted else { return false }
            state.insert(response, for: key)
            if state.size > limit { state.purge(to: limit / 100 * Self.keptPercent) }
            return true
        }
    }

    func replace(_ old: StoredResponse, with response: StoredResponse, for key: CacheKey) {
        part(of: key).state.withLock { $0.replace(old, with: response, for: key) }
    }

    /// Begins to store a response. It ends with ``end(_:of:)``.
    func begin(_ arrival: Arrival, of key: CacheKey) { part(of: key).state.withLock { $0.begin(arrival, of: key) } }
    func end(_ arrival: Arrival, of key: CacheKey) { part(of: key).state.withLock { $0.end(arrival, of: key) } }

    func remove(_ key: CacheKey) {
        part(of: key).state.withLock { state in
            state.abandonArrivals(of: key)
            if let place = state.index[key] { state.remove(place) }
        }
    }

    func remove(_ response: StoredResponse, for key: CacheKey) {
        part(of: key).state.withLock { $0.remove(response, for: key) }
    }

    /// - Returns: how many responses went.
    @discardableResult
    package func removeAll(where isMeant: (CacheKey) -> Bool) -> Int {
        all.reduce(0) { count, part in
            count
                + part.state.withLock { state in
                    state.abandonArrivals(where: isMeant)
                    return state.index.values.sorted().reduce(0) { count, place in
                        guard let known = state.places[place], isMeant(known.key) else { return count }
                        state.remove(place)
                        return count + known.responses.count
                    }
                }
        }
    }

    package func forEach(_ body: (CacheKey, StoredResponse) -> Void) {
        for part in all {
            let places = part.state.withLock { $0.places }
            for case let place? in places { for response in place.responses { body(place.key, response) } }
        }
    }

    /// Bytes, and responses.
    package var figures: (bytes: Int, responses: Int) {
        all.reduce((0, 0)) { sum, part in
            part.state.withLock { state in
                (sum.0 + state.size, sum.1 + state.count)
            }
        }
    }
}
