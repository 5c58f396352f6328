import PinproxyCaching
import PinproxyDiskStore
import PinproxyHTTPWire
import PinproxyTransport

/// A response that is stored while it is passed on.
final class ResponseRecording {
    private let use: CacheUse
    private let head: OwnedResponse
    let times: ResponseTimes
    private let validUntil: Int64
    private let scope: AddressScope?
    /// The body while it is sent to the client.
    let body: StoringBody

    /// Nil: there is no store for it.
    /// - Parameter origin: has the response's head.
    init?(
        _ head: OwnedResponse, from origin: any Upstream, for use: CacheUse, at times: ResponseTimes, budget: BodyBudget
    ) {
        let facts = origin.facts
        self.use = use
        self.head = head
        self.times = times
        validUntil = facts.connection?.validUntil ?? .max
        scope = facts.scope
        guard use.terms.rules.store == .disk else {
            body = StoringBody(
                origin.responseBody,
                to: MemoryKeeper(
                    for: use.key, in: use.cache.memory, limit: use.cache.longestBody(.memory), from: budget))
            return
        }
        guard let disk = use.cache.disk else { return nil }
        // A copy, since the view borrows from it.
        let asked = use.asked
        let response = StoredResponse(
            head, body: .closed, times: times, for: asked.view, by: use.policy,
            isShared: use.isShared, validUntil: validUntil, from: scope)
        let identity = StoredRecord.Identity(
            key: use.key.digest, variant: response.variant, owner: use.key.ownerBytes, host: use.key.host,
            url: use.key.url)
        guard let keeper = DiskKeeper(identity, in: disk, from: budget) else { return nil }
        body = StoringBody(origin.responseBody, to: keeper)
    }

    /// Stores the response. False: its body is incomplete.
    func commit() -> Bool {
        switch body.whole {
        case let kept as MemoryKeeper:
            let bytes = StoredBytes(kept.bytes, in: use.cache.memory.account)
            guard let fresh = response(.bytes(bytes), length: kept.bytes.count) else { return false }
            use.cache.store(fresh.traits.status == 206 ? combined(fresh) : fresh, for: use.key, from: kept.arrival)
        case let kept as DiskKeeper:
            guard let fresh = response(.closed, length: kept.length) else { return false }
            kept.commit(head: fresh.head.message, metadata: fresh.metadata) { [cache = use.cache] in
                cache.countStored()
            }
        default: return false
        }
        return true
    }

    private func response(_ body: StoredBody, length: Int) -> StoredResponse? {
        guard var head = head.stored(length: length, received: times.received) else { return nil }
        // A part that is all of it.
        if head.head.status == 206, let part = StoredPart(CachedTraits(head.view), bodyLength: UInt64(length)),
            let stored = part.head(of: head)
        {
            head = stored
        }
        let asked = use.asked
        return StoredResponse(
            head, body: body, times: times, for: asked.view, by: use.policy, isShared: use.isShared,
            validUntil: validUntil, from: scope)
    }

    /// The part with what is stored of the same representation.
    private func combined(_ part: StoredResponse) -> StoredResponse {
        for known in use.cache.memory.responses(for: use.key) {
            let limit = use.cache.longestBody(.memory)
            if let both = known.combined(with: part, limit: limit, in: use.cache.memory.account) { return both }
        }
        return part
    }
}
