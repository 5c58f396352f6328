internal import PinproxyHTTPWire

/// The answer to a request from a matching stored response (RFC 9111 section 4).
package enum CacheAnswer: Sendable, Equatable {
    package enum Leave: Sendable, Equatable {
        /// The client accepts it (max-stale).
        case client
        /// It is used while the origin is asked (RFC 5861 section 3).
        case whileRevalidating
    }

    /// Why the origin is asked: RFC 9211 section 2.2.
    package enum Reason: String, Sendable {
        case method, uriMiss = "uri-miss", varyMiss = "vary-miss", request, stale, partial, bypass
    }

    case fresh
    case stale(Leave)
    /// The origin is asked; what is stored may be confirmed if it has a validator.
    case ask(Reason)
    /// 504: the client wants no other answer (section 5.2.1.7).
    case unavailable
}

/// How a stored response may be used for a request.
package struct CacheChoice: Sendable, Equatable {
    package let response: CachedTraits
    package let freshness: Freshness
    package let isShared: Bool

    package init(_ response: CachedTraits, _ freshness: Freshness, isShared: Bool) {
        self.response = response
        self.freshness = freshness
        self.isShared = isShared
    }

    /// For a request without anything stored.
    package static func miss(_ request: CacheRequest, _ reason: CacheAnswer.Reason) -> CacheAnswer {
        request.directives.flags.contains(.onlyIfCached) ? .unavailable : .ask(reason)
    }

    package func answer(to request: CacheRequest, at now: Int64) -> CacheAnswer {
        let answer = wanted(by: request, at: now)
        if case .ask = answer, request.directives.flags.contains(.onlyIfCached) { return .unavailable }
        return answer
    }

    private func wanted(by request: CacheRequest, at now: Int64) -> CacheAnswer {
        guard request.method == .get || request.method == .head else { return .ask(.method) }
        if request.asksForState || request.hasContent { return .ask(.bypass) }
        let wish = request.directives
        if wish.flags.contains(.noCache) || wish.flags.contains(.noStore) { return .ask(.request) }
        if response.directives.flags.contains(.noCache) { return .ask(.stale) }
        let (age, rest) = (freshness.age(at: now), freshness.rest(at: now))
        // RFC 9111 section 5.2.1.1. Ages are whole seconds: 0 wants none at all, which is how browsers reload.
        if let most = wish.maxAge, age > most || most == 0 {
            guard let stale = wish.maxStale, mayBeStale, age - most <= stale else { return .ask(.request) }
        }
        if rest > 0 { return rest >= wish.minFresh ?? 0 ? .fresh : .ask(.request) }
        if wish.minFresh != nil { return .ask(.request) }
        guard mayBeStale, now >= freshness.received else { return .ask(.stale) }
        if let most = wish.maxStale, -rest <= most || most == CacheDirectives.mostSeconds { return .stale(.client) }
        // A client that gives the most age without max-stale wants nothing stale.
        if wish.maxAge == nil || wish.maxStale != nil, let most = response.directives.staleWhileRevalidate, -rest < most
        {
            return .stale(.whileRevalidating)
        }
        return .ask(.stale)
    }

    /// Whether it may be served if the origin fails (RFC 5861 section 4): at most for as long as response or request
    /// say.
    package func standsInForError(_ request: CacheRequest, at now: Int64) -> Bool {
        let wish = request.directives
        guard request.method == .get || request.method == .head, !request.asksForState, !request.hasContent,
            wish.flags.isDisjoint(with: [.noCache, .noStore]), !response.directives.flags.contains(.noCache),
            mayBeStale, now >= freshness.received,
            let most = [response.directives.staleIfError, wish.staleIfError].compactMap(\.self).max()
        else { return false }
        return -freshness.rest(at: now) < most
    }

    /// Sections 5.2.2.2, 5.2.2.8 and 5.2.2.10.
    private var mayBeStale: Bool {
        let says = response.directives
        if says.flags.contains(.mustRevalidate) { return false }
        return !isShared || !says.flags.contains(.proxyRevalidate) && says.sharedMaxAge == nil
    }
}
