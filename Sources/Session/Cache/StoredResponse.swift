package import PinproxyCaching
import PinproxyDiskStore
package import PinproxyHTTPWire

/// A response that was stored, or a part of one, with what decides whether it may be used. Immutable: all workers share
/// it.
package final class StoredResponse: Sendable {
    package let head: OwnedResponse
    let body: StoredBody
    /// The record of a response on disk.
    let record: StoredRecord?
    package let traits: CachedTraits
    package let times: ResponseTimes
    package let freshness: Freshness
    let policy: CachePolicy
    /// The request's values of the fields in Vary.
    let selected: SelectedFields
    /// Unix seconds: the verdict about its origin holds until then.
    package let validUntil: Int64
    let scope: AddressScope?
    let isShared: Bool

    init(
        _ head: OwnedResponse, body: StoredBody, times: ResponseTimes, for request: borrowing RequestView,
        by policy: CachePolicy, isShared: Bool, validUntil: Int64, from scope: AddressScope?,
        record: StoredRecord? = nil
    ) {
        self.record = record
        self.policy = policy
        self.head = head
        self.body = body
        self.times = times
        traits = CachedTraits(head.view)
        freshness = Freshness(traits, times, isShared: isShared)
        selected = SelectedFields(traits.vary.list, of: request)
        self.isShared = isShared
        self.validUntil = validUntil
        self.scope = scope
    }

    /// Makes a copy with another head.
    private init(
        _ old: StoredResponse, head: OwnedResponse, body: StoredBody? = nil, times: ResponseTimes,
        selected: SelectedFields? = nil, validUntil: Int64
    ) {
        record = old.record
        self.head = head
        self.body = body ?? old.body
        policy = old.policy
        self.times = times
        traits = CachedTraits(head.view)
        freshness = Freshness(traits, times, isShared: old.isShared)
        self.selected = selected ?? old.selected
        isShared = old.isShared
        self.validUntil = validUntil
        scope = old.scope
    }

    /// With the fields of a 304 (RFC 9111 section 4.3.4); nil: they make no head.
    /// - Parameter asked: the request that it answers: Vary may name other fields now.
    func confirmed(
        by update: borrowing ResponseView, to asked: OwnedRequest, times: ResponseTimes, validUntil: Int64
    ) -> StoredResponse? {
        guard let head = Confirmation.updated(head, by: update, received: times.received) else { return nil }
        let names = CachedTraits(head.view).vary.list
        return StoredResponse(
            self, head: head, times: times, selected: SelectedFields(names, of: asked.view), validUntil: validUntil)
    }

    /// Bytes of the whole representation; this may be a part of it.
    var complete: UInt64 {
        guard case .bytes(_, let complete?)? = traits.contentRange, traits.status == 206 else {
            return body.count
        }
        return complete
    }

    /// One response of this one and a newer one, which are parts of the same representation (RFC 9111 section 3.4).
    /// Nil: they can't be combined.
    /// - Parameters:
    ///   - limit: bytes.
    ///   - account: counts them.
    func combined(with new: StoredResponse, limit: Int, in account: MemoryAccount) -> StoredResponse? {
        guard policy == new.policy, selected == new.selected, let own = body.bytes, let others = new.body.bytes,
            let known = StoredPart(traits, bodyLength: body.count),
            let part = StoredPart(new.traits, bodyLength: new.body.count),
            let both = known.combined(with: part), both.part.bytes.count <= limit
        else { return nil }
        // A copy, since the view borrows from it.
        let newer = new.head
        guard let head = both.head(of: head, with: newer.view, received: new.times.received) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(both.part.bytes.count)
        for piece in both.pieces {
            bytes += (piece.isNew ? others : own)[Int(piece.bytes.lowerBound)..<Int(piece.bytes.upperBound)]
        }
        return StoredResponse(
            new, head: head, body: .bytes(StoredBytes(bytes, in: account)), times: new.times,
            validUntil: min(validUntil, new.validUntil))
    }

    /// A copy with its body open.
    func opened(_ body: OpenedBody) -> StoredResponse {
        StoredResponse(self, head: head, body: .file(body), times: times, validUntil: validUntil)
    }

    /// Bytes of memory, about.
    var size: Int { head.length + (body.bytes?.count ?? 0) + 512 }

    /// Whether it is for such a request, by Vary.
    func matches(_ request: borrowing RequestView) -> Bool {
        traits.vary == .none || selected == SelectedFields(traits.vary.list, of: request)
    }

    /// Whether the other one is for the same requests.
    func isVariant(of other: StoredResponse) -> Bool {
        policy == other.policy && traits.vary == other.traits.vary && selected == other.selected
    }

    var choice: CacheChoice { CacheChoice(traits, freshness, isShared: isShared) }
}
