import PinproxyCaching
import PinproxyEventLoop
import PinproxyHTTPWire

/// Stored responses, where a rule allows them; unused without any.
extension Exchange {
    /// Looks for a stored response before the origin is asked.
    func lookUp(
        _ terms: CacheTerms, _ destination: Destination, _ rules: ExchangeRules, fresh: Bool
    ) -> ExchangeState.Event? {
        guard cacheUse == nil, let key = cacheKey(terms, destination) else { return obtain(rules, fresh: fresh) }
        let policy = CachePolicy(origin: destination.target.key, rules: terms.identity)
        let now = session.unixTime()
        // Other methods only make stored responses useless.
        guard terms.rules.store == .disk, method == .get || method == .head, let disk = session.cache.disk else {
            var finding: CacheFinding?
            withRequest { finding = session.cache.find($0, for: key, by: policy, terms: terms, at: now) }
            return proceed(with: finding, key, policy, terms, destination, rules, fresh: fresh)
        }
        var asked: OwnedRequest?
        withRequest { asked = OwnedRequest($0) }
        guard let asked else { return obtain(rules, fresh: fresh) }
        let lookup = CacheLookup { [weak self] lookup, found in
            guard let self, cacheLookup === lookup else { return }
            whileHeld {
                self.endLookup()
                let finding = self.session.cache.finding(
                    asked.view, found?.response, hasOthers: found?.hasOthers == true, key, policy, terms, at: now)
                self.happened(
                    self.proceed(with: finding, key, policy, terms, destination, rules, fresh: fresh))
            }
        }
        cacheLookup = lookup
        // A disk that says nothing delays the request, and doesn't stop it.
        deadline.set(afterNanoseconds: CacheLookup.patienceNanoseconds)
        let waiting = LoopBound(lookup, on: session.loop)
        disk.find(asked, key, policy, at: now) { found in waiting.post { $0.answered(found) } }
        return nil
    }

    private func endLookup() {
        cacheLookup = nil
        deadline.clear()
    }

    private func proceed(
        with finding: CacheFinding?, _ key: CacheKey, _ policy: CachePolicy, _ terms: CacheTerms,
        _ destination: Destination, _ rules: ExchangeRules, fresh: Bool
    ) -> ExchangeState.Event? {
        switch finding {
        case .serve(let served, let stored, let handling, let confirming)?:
            if confirming { confirm(stored, key, policy, terms, destination) }
            return start(on: door(to: served, of: stored, handling))
        case .ask(let use)?:
            if !method.isSafe { use.client = downstream.guide.cacheOwner }
            cacheUse = use
            return obtain(rules, fresh: fresh)
        case .unavailable?:
            failure = .notStored
            return .upstreamFailed(isFinal: true)
        case nil: return obtain(rules, fresh: fresh)
        }
    }

    private func cacheKey(_ terms: CacheTerms, _ destination: Destination) -> CacheKey? {
        // A range that a rule changes isn't the client's.
        guard !request.wantsUpgrade, !request.needsUpgrade, rules?.edits.changes("Range") != true else { return nil }
        var target: [UInt8] = []
        var isForEverybody = terms.rules.isShared
        withRequest {
            target = $0.pathAndQuery
            if target.isEmpty { target = [UInt8(ascii: "/")] }
            if isForEverybody { isForEverybody = $0.isForEverybody }
        }
        guard let owner = isForEverybody ? .everybody : downstream.guide.cacheOwner else { return nil }
        return CacheKey(
            target: target, host: destination.target.host, port: destination.target.port,
            isSecure: destination.isSecure, owner: owner)
    }

    private func door(
        to served: ServedResponse, of stored: StoredResponse, _ handling: CacheHandling
    ) -> StoredUpstream {
        session.cache.count(handling.result, saved: served.length)
        giveBackAtHand()
        return StoredUpstream(served, handling, from: stored.scope, session: session)
    }

    /// A stored response to serve when the origin can't be reached (RFC 5861 section 4); nil: not stored.
    func standIn(for failure: UpstreamFailure) -> StoredUpstream? {
        guard let use = cacheUse, failure.isOfNetwork, let stored = use.standIn(at: session.unixTime()),
            let served = ServedResponse(stored, to: use.request)
        else { return nil }
        let now = session.unixTime()
        var status = use.status
        status.rest = stored.freshness.rest(at: now)
        cacheUse = nil
        return door(
            to: served, of: stored,
            CacheHandling(result: .stale, status: status, age: stored.freshness.age(at: now)))
    }

    /// Asks the origin while the client gets what is stored (RFC 5861 section 3).
    private func confirm(
        _ stored: StoredResponse, _ key: CacheKey, _ policy: CachePolicy, _ terms: CacheTerms,
        _ destination: Destination
    ) {
        guard let rules, session.cache.beginConfirmation(of: key) else { return }
        var asked: OwnedRequest?
        withRequest { asked = OwnedRequest($0) }
        guard let asked else { return session.cache.endConfirmation(of: key) }
        let use = CacheUse(
            asked, CacheRequest(asked.view), for: key, by: policy, in: session.cache, terms: terms, stored: stored,
            because: .stale)
        BackgroundConfirmation(use, session: session, report: downstream.guide.attemptReport())
            .start(to: destination, by: rules, entry: record.entry)
    }

    /// The response fields about the cache.
    var cacheEdits: HeadEdits {
        var edits = HeadEdits()
        guard let cache = upstream?.facts.cache else { return edits }
        // RFC 9111 section 1.2.2.
        if let age = cache.age { edits.append(.set("\(min(age, CacheDirectives.mostSeconds))"), "Age") }
        edits.append(.add(cache.status.text), "Cache-Status")
        return edits
    }
}

extension UpstreamFailure {
    /// The origin can't be reached; nothing was refused.
    fileprivate var isOfNetwork: Bool {
        switch self {
        case .unresolved, .unreachable, .timedOut, .parentFailed, .noNetwork: true
        default: false
        }
    }
}
