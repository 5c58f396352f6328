import PinproxyEventLoop
import PinproxyHTTPWire

/// Begins an exchange: over an available upstream, by sharing an equal request, or after waiting.
extension Exchange {
    /// Begins with a borrowed request.
    package func begin(
        _ request: RequestTraits, to destination: Destination, by rules: ExchangeRules? = nil,
        over leased: (any Upstream)?
    ) {
        begin(request, to: destination, by: rules, over: leased, confirming: nil)
    }

    /// Begins the task of a request made here.
    /// - Parameters:
    ///   - entry: the pattern of the matched entry.
    ///   - use: a stored response to confirm.
    func begin(
        _ request: OwnedRequest, number: UInt64, to destination: Destination, by rules: ExchangeRules, entry: String?,
        confirming use: CacheUse? = nil
    ) {
        record.began(request.view, number: number, at: session.now)
        record.authority = destination.authority
        record.entry = entry
        begin(RequestTraits(madeHere: request.head), to: destination, by: rules, over: nil, confirming: use)
    }

    /// - Parameter use: a stored response to confirm.
    func begin(
        _ request: RequestTraits, to destination: Destination, by rules: ExchangeRules?, over leased: (any Upstream)?,
        confirming use: CacheUse?
    ) {
        self.request = request
        aim(at: Hop(asked: destination, by: rules))
        cacheUse = use
        session.begin(&record)
        let leased = fitting(leased)
        if let rules, rules.asksAgain {
            downstream.withRequest { itinerary = Itinerary($0, to: destination, by: rules.session) }
        }
        guard let rules, rules.takesTurns else { return begin(over: leased) }
        atHand = leased
        begin(over: nil)
    }

    /// A connection that CONNECT has made, if it meets the need of the request; else it goes back.
    private func fitting(_ leased: (any Upstream)?) -> (any Upstream)? {
        guard let leased, let shared = leased.facts.connection as? HTTP2Upstream, !shared.meets(connectionNeed),
            let destination
        else { return leased }
        _ = leased.end(.unused(idleNanoseconds: destination.terms.idleUpstreamNanoseconds))
        return nil
    }

    func aim(at hop: Hop) {
        destination = hop.destination
        if rules !== hop.rules { rules = hop.rules }
        connectionNeed = request.wantsUpgrade ? .upgrade : request.hasBody ? .window : .any
        if let protocols = hop.rules?.session.http, !protocols.contains(.http2) { connectionNeed = .own }
        silence = hop.rules?.silence ?? hop.destination.terms.silence
        clock = BodyClock(rate: hop.rules?.minimumRate ?? hop.destination.terms.limits.minimumRate)
        if throttle != nil { throttle = nil }
        if cacheUse != nil { cacheUse = nil }
        mayShare = hop.rules?.ofSharedFetch != nil
        if let admission {
            let isLimited = hop.rules?.limit(at: hop.destination.origin) != nil
            if !isLimited || !admission.isFor(hop.destination.target) { leaveTurn() }
        }
    }

    // MARK: Sharing and turns

    /// Obtains an upstream where responses are stored, and requests coalesce or wait for turns.
    func obtainInTurn(_ rules: ExchangeRules, fresh: Bool) -> ExchangeState.Event? {
        guard let destination, let terms = rules.cache else { return obtain(rules, fresh: fresh) }
        // The rest of a broken response comes from where its beginning did.
        guard !state.asksForRest else {
            cacheUse = nil
            return obtain(rules, fresh: fresh)
        }
        return lookUp(terms, destination, rules, fresh: fresh)
    }

    /// Obtains an upstream of the origin.
    func obtain(_ rules: ExchangeRules, fresh: Bool) -> ExchangeState.Event? {
        guard let destination else { return nil }
        if mayShare {
            // A request that couldn't share the whole response continues alone.
            mayShare = false
            if cacheUse?.confirmable == nil, let shared = share(destination, rules) {
                // The shared fetch takes its own connection from the pool.
                giveBackAtHand()
                return start(on: shared)
            }
        }
        guard let limit = rules.limit(at: destination.origin), admission == nil else { return connect(fresh: fresh) }
        let admission = Admission(
            to: destination.target, by: rules.session, limit: limit, among: session.admissions, on: session.loop
        ) { [weak self] in
            guard let self else { return }
            whileHeld { self.happened(self.turnHasCome(to: destination, fresh: fresh)) }
        }
        self.admission = admission
        guard admission.isWaiting else { return connect(fresh: fresh) }
        if rules.session.maxActive != nil { deadline.set(afterNanoseconds: silence.firstByte) }
        return nil
    }

    private func turnHasCome(to destination: Destination, fresh: Bool) -> ExchangeState.Event? {
        deadline.clear()
        // Nothing was sent yet, so the policy in force still applies.
        guard !destination.origin.isRetired else {
            return notAdmitted("the configuration has changed while the request waited for its turn; ask again")
        }
        return connect(fresh: fresh)
    }

    func leaveTurn() {
        admission?.leave()
        admission = nil
    }

    /// Returns the leased connection to the pool.
    func giveBackAtHand() {
        guard let upstream = atHand.take(), let destination else { return }
        _ = upstream.end(.unused(idleNanoseconds: destination.terms.idleUpstreamNanoseconds))
    }

    func notAdmitted(_ cause: String) -> ExchangeState.Event {
        failure = .notAdmitted(cause)
        return .upstreamFailed(isFinal: true)
    }

    private func begin(over leased: (any Upstream)?) {
        happened(
            .requestArrived(expectsContinue: request.expectsContinue, leased: leased != nil, limits: retryLimits))
        if let leased { happened(start(on: leased)) }
    }

    /// Shares the response to an equal request, or starts one that others can share.
    private func share(_ destination: Destination, _ rules: ExchangeRules) -> SharedUpstream? {
        guard let rulesOfFetch = rules.ofSharedFetch else { return nil }
        var request: OwnedRequest?
        let personal = rules.session.coalesceWith
        withRequest { if $0.isShareable(with: personal) { request = OwnedRequest($0) } }
        guard let request else { return nil }
        let place = SharedFetches.Place(
            key: SharedFetches.Key(
                origin: destination.target.key, reach: destination.target.reach, rules: ObjectIdentifier(rules),
                target: request.view.pathAndQuery, fields: request.fields),
            destination: destination, rules: rulesOfFetch, entry: destination.source?.pattern)
        let shared = SharedUpstream(request, to: place, session: session, report: downstream.guide.attemptReport())
        // One copy is stored: that of who began.
        if !shared.join(session.fetches) { cacheUse = nil }
        record.sharedTask = shared.task
        return shared
    }
}
