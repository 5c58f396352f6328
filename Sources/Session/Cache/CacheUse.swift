import PinproxyCaching
import PinproxyHTTPWire

/// The cache's work for one request at one hop: the request, and a stored response that may be confirmed.
final class CacheUse {
    let cache: ResponseCache
    let terms: CacheTerms
    let key: CacheKey
    let policy: CachePolicy
    let request: CacheRequest
    /// The request, for Vary.
    let asked: OwnedRequest
    /// A stored response that matches; nil: none does.
    private(set) var stored: StoredResponse?
    /// The client's owner, if known: an unsafe request also removes its private responses.
    var client: CacheKey.Owner?
    /// Why the origin is asked.
    let reason: CacheAnswer.Reason

    init(
        _ asked: OwnedRequest, _ request: CacheRequest, for key: CacheKey, by policy: CachePolicy,
        in cache: ResponseCache, terms: CacheTerms, stored: StoredResponse?, because reason: CacheAnswer.Reason
    ) {
        self.cache = cache
        self.terms = terms
        self.key = key
        self.policy = policy
        self.request = request
        self.asked = asked
        self.stored = stored
        self.reason = reason
    }

    /// One store for all users.
    var isShared: Bool { key.owner == .everybody }

    /// Drops a stored response that the origin doesn't confirm. The request is sent unchanged.
    func forgetStored() {
        if let stored { cache.remove(stored, for: key) }
        stored = nil
        confirmable = nil
    }

    /// A stored response that the origin is asked to confirm; nil: the request goes as it is.
    private(set) lazy var confirmable: StoredResponse? = {
        guard request.method == .get, !request.asksForState, !request.hasContent,
            !request.directives.flags.contains(.noStore), let stored, stored.traits.hasValidator,
            ServedResponse(stored, to: request) != nil
        else { return nil }
        return stored
    }()

    /// A stored response to serve when the origin fails (RFC 5861 section 4).
    func standIn(at now: Int64) -> StoredResponse? {
        guard let stored, stored.validUntil > now, stored.choice.standsInForError(request, at: now) else { return nil }
        return stored
    }

    var status: CacheStatus { CacheStatus(.ask(reason)) }
}

/// The cache's result for a request.
enum CacheFinding {
    case serve(ServedResponse, StoredResponse, CacheHandling, confirming: Bool)
    case ask(CacheUse)
    /// 504: the client wants a stored response or none.
    case unavailable
}

extension ResponseCache {
    /// Looks in memory for a request's response.
    func find(
        _ view: borrowing RequestView, for key: CacheKey, by policy: CachePolicy, terms: CacheTerms, at now: Int64
    ) -> CacheFinding {
        let known = memory.responses(for: key).filter { $0.policy == policy && $0.validUntil > now }
        var stored: StoredResponse?
        for response in known where stored == nil && response.matches(view) { stored = response }
        return finding(view, stored, hasOthers: !known.isEmpty, key, policy, terms, at: now)
    }

    /// - Parameters:
    ///   - stored: matches the request.
    ///   - hasOthers: responses of the URL are there, if only for other requests.
    func finding(
        _ view: borrowing RequestView, _ stored: StoredResponse?, hasOthers: Bool, _ key: CacheKey,
        _ policy: CachePolicy, _ terms: CacheTerms, at now: Int64
    ) -> CacheFinding {
        let request = CacheRequest(view)
        var stored = stored
        // RFC 9111 section 3.5: a response to a request without credentials may differ.
        if request.hasCredentials, stored?.traits.allowsCredentials == false { stored = nil }
        let choice = stored?.choice
        let answer =
            choice?.answer(to: request, at: now)
            ?? CacheChoice.miss(
                request,
                !request.method.isCached ? .method : request.hasContent ? .bypass : hasOthers ? .varyMiss : .uriMiss)
        func ask(_ reason: CacheAnswer.Reason) -> CacheFinding {
            .ask(
                CacheUse(
                    OwnedRequest(view), request, for: key, by: policy, in: self, terms: terms, stored: stored,
                    because: reason))
        }
        switch (answer, stored, choice) {
        case (.fresh, let stored?, let choice?), (.stale, let stored?, let choice?):
            guard let served = ServedResponse(stored, to: request) else {
                return request.directives.flags.contains(.onlyIfCached) ? .unavailable : ask(.partial)
            }
            var status = CacheStatus(answer)
            status.rest = choice.freshness.rest(at: now)
            let handling = CacheHandling(
                result: answer == .fresh ? .hit : .stale, status: status, age: choice.freshness.age(at: now))
            return .serve(served, stored, handling, confirming: answer == .stale(.whileRevalidating))
        case (.ask(let reason), _, _): return ask(reason)
        default: return .unavailable
        }
    }
}

extension Method {
    fileprivate var isCached: Bool { self == .get || self == .head }
}
