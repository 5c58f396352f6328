import EventLoop
import HTTPWire

/// How an exchange begins: by an upstream that is at hand, by another's that is the same, or when its turn has come.
extension Exchange {
    /// Begins with the request that the one who asks lends.
    /// - Parameters:
    ///   - request: what has to be known of it.
    ///   - leased: an upstream that is at hand; nil: one is obtained.
    package func begin(
        _ request: RequestTraits, to destination: Destination, by rules: ExchangeRules? = nil, over leased: UpstreamConnection?
    ) {
        self.request = request
        aim(at: Hop(asked: destination, by: rules))
        session.begin(&record)
        if let rules, rules.asksAgain {
            downstream.withRequest { itinerary = Itinerary($0, to: destination, by: rules.session) }
        }
        guard let rules, rules.takesTurns else { return begin(over: leased) }
        if let shared = share(destination, rules) {
            // Whoever runs it takes one from the pool.
            if let leased { leased.origin.giveBack(leased, idleNanoseconds: destination.terms.idleUpstreamNanoseconds) }
            arrived(leased: true)
            return start(sharing: shared)
        }
        guard let limit = rules.session.maxActive else { return begin(over: leased) }
        arrived(leased: true)
        let admission = Admission(
            to: destination.target, by: rules.session, limit: limit, among: session.admissions, on: session.loop
        ) { [unowned self] in
            deadline.clear()
            // Nothing was sent yet: what the policy in force refuses isn't begun.
            guard !destination.origin.isRetired else {
                return notAdmitted("the configuration has changed while the request waited for its turn; ask again")
            }
            if let leased, !leased.isOver { start(on: leased) } else { open(fresh: false) }
        }
        self.admission = admission
        if admission.isWaiting {
            deadline.set(afterNanoseconds: silence.firstByte)
        } else if let leased {
            start(on: leased)
        } else {
            open(fresh: false)
        }
    }

    /// Where the request goes: at first, and where a redirect leads.
    func aim(at hop: Hop) {
        destination = hop.destination
        if rules !== hop.rules { rules = hop.rules }
        silence = hop.rules?.silence ?? hop.destination.terms.silence
        if throttle != nil { throttle = nil }
    }

    func notAdmitted(_ cause: String) {
        happened(.upstreamFailed(isFinal: true), because: .notAdmitted(cause))
    }

    private func begin(over leased: UpstreamConnection?) {
        arrived(leased: leased != nil)
        if let leased { start(on: leased) }
    }

    private func arrived(leased: Bool) {
        happened(
            .requestArrived(expectsContinue: request.expectsContinue, leased: leased, limits: retryLimits))
    }

    /// Shares the response to a request of another that is the same, or has one made that others can share.
    private func share(_ destination: Destination, _ rules: ExchangeRules) -> SharedUpstream? {
        guard let rulesOfFetch = rules.ofSharedFetch else { return nil }
        var request: OwnedRequest?
        let personal = rules.session.coalesceWith
        downstream.withRequest { if $0.isShareable(with: personal) { request = OwnedRequest($0) } }
        guard let request else { return nil }
        let place = SharedFetches.Place(
            key: SharedFetches.Key(
                origin: destination.target.key, rules: ObjectIdentifier(rules), target: request.pathAndQuery,
                person: request.person(by: personal)),
            destination: destination, rules: rulesOfFetch, entry: record.entry)
        let shared = SharedUpstream(request, to: place, session: session, report: downstream.attemptReport())
        shared.join(session.fetches)
        record.sharedTask = shared.task
        return shared
    }

    private func start(sharing shared: SharedUpstream) {
        upstream = shared
        shared.begin(for: self)
        happened(.upstreamReady(reused: false))
    }
}
