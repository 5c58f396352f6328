import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport

/// One request with its response, between downstream and upstream: carries out ``ExchangeState``. A downstream uses one
/// object for all its exchanges; each ends with one ``Downstream/exchangeEnded(_:)``, after its task completed once.
package final class Exchange: UpstreamReceiver {
    /// The client's side; set once, before the first exchange.
    // unowned: the downstream keeps the exchange, and ``whileHeld(_:)`` retains it during calls from elsewhere.
    @exclusivity(unchecked) package unowned var downstream: (any Downstream)!
    let session: LoopSession
    // Stored whole, or changed by code that calls no other code: exclusivity checks would cost more than the access.
    @exclusivity(unchecked) package private(set) var state = ExchangeState()
    /// The task's record. The downstream fills in what only it knows.
    package var record = TaskRecord()

    @exclusivity(unchecked) var request = RequestTraits()
    @exclusivity(unchecked) var destination: Destination?
    @exclusivity(unchecked) var upstream: (any Upstream)?
    @exclusivity(unchecked) var requestBody: (any BodySource)?
    @exclusivity(unchecked) var requestSink: (any BodySink)?
    @exclusivity(unchecked) var responseBody: (any BodySource)?
    @exclusivity(unchecked) var responseSink: (any BodySink)?
    @exclusivity(unchecked) var rules: ExchangeRules?
    /// Nanoseconds without a byte: the rules', or else the destination's.
    @exclusivity(unchecked) var silence = Silence()
    @exclusivity(unchecked) var clock = BodyClock(rate: nil)
    /// Set where the host's concurrent exchanges are limited.
    @exclusivity(unchecked) var admission: Admission?
    /// The response to an equal request may be shared, at the current hop.
    @exclusivity(unchecked) var mayShare = false
    /// A connection for the first try, kept while that waits for its turn.
    @exclusivity(unchecked) var atHand: (any Upstream)?
    /// Set where a rule may change the request.
    @exclusivity(unchecked) var itinerary: Itinerary?
    /// The request, kept in case it must be sent again.
    @exclusivity(unchecked) var replay: (head: OwnedRequest, body: ReplayedBody)?
    /// Set while the response in flight may be continued after a break.
    @exclusivity(unchecked) var resumption: Resumption?
    /// Set where the response of the current hop may be stored, or may confirm a stored one.
    @exclusivity(unchecked) var cacheUse: CacheUse?
    /// The disk is asked for a stored response.
    @exclusivity(unchecked) var cacheLookup: CacheLookup?
    /// A final head about which the guide decides; nothing is read meanwhile.
    @exclusivity(unchecked) var undecided: ResponseTraits?
    @exclusivity(unchecked) var inspection: ResponseInspection?
    @exclusivity(unchecked) var throttle: RequestThrottle?
    /// The head's verdict, until the inspection begins.
    var verdict: HeadVerdict?
    @exclusivity(unchecked) var connectionNeed = ConnectionNeed.any
    @exclusivity(unchecked) private var attempt: (any ConnectionTicket)?
    @exclusivity(unchecked) var failure: ExchangeFailure?
    let deadline: Deadline

    package init(session: LoopSession) {
        self.session = session
        deadline = Deadline(loop: session.loop)
        deadline.bind(to: self) { exchange in exchange.whileHeld { exchange.timedOut() } }
    }

    package var isInFlight: Bool { state.isInFlight }

    /// A summary of the exchange in flight, if any.
    package var summary: TaskSummary? {
        guard isInFlight else { return nil }
        return TaskSummary(
            record, state: state.isSuspended ? .suspended : .running,
            phase: admission?.isWaiting == true ? "waiting for its turn" : state.words,
            up: requestSink?.carried ?? 0, down: responseSink?.carried ?? 0, now: session.now)
    }

    var retryLimits: RetryRule.Limits {
        rules.map { RetryRule.Limits(redirects: UInt8(clamping: $0.session.maxRedirects)) } ?? RetryRule.Limits()
    }

    package var unixTime: Int64 { session.unixTime() }

    // MARK: Actions

    /// Retains the downstream during a call from elsewhere; it may release itself and the exchange at the end.
    @inline(__always) func whileHeld(_ work: () -> Void) { withExtendedLifetime(downstream, work) }

    /// Performs the event's action, then those of the events that follow, in order.
    func happened(_ event: ExchangeState.Event?) {
        var next = event
        while let event = next { next = perform(state.received(event)) }
    }

    func happened(_ event: ExchangeState.Event, because failure: ExchangeFailure) {
        self.failure = failure
        happened(event)
    }

    /// - Returns: the resulting event.
    private func perform(_ action: ExchangeState.Action) -> ExchangeState.Event? {
        switch action {
        case .none: return nil
        case .wait: keepTime()
        case .open(let fresh): return open(fresh: fresh)
        case .send: return send()
        case .resend: return resend()
        case .stopReadingRequest:
            downstream.wantsRead(false)
            keepTime()
        case .forwardInterim: return forwardInterim()
        case .forwardFinal: return forward(.final)
        case .hold: return hold()
        case .askAgain: return askAgain()
        case .reopen: return reopen()
        case .takeUp: return takeUp()
        case .judge: return judgeBody()
        case .release: return release()
        case .forwardUpgrade: return forward(.upgrade)
        case .awaitHead: upstream?.wantsRead(true)
        case .pause: pause()
        case .proceed: proceed()
        case .finish: finish()
        case .becomeRelay: becomeRelay()
        case .refuse(let fault): refuse(fault)
        case .cut(let how): cut(how)
        }
        return nil
    }

    func clearDeadline() { deadline.clear() }

    func keepTime() {
        // A pause that a rule requests counts as no delay, however long it is.
        if let throttle, throttle.isPausing, state.passesRequest {
            clock.stop()
            return deadline.clear()
        }
        let silence: UInt64
        switch state.patience {
        case .unlimited:
            clock.stop()
            return deadline.clear()
        case .firstByte: silence = self.silence.firstByte
        case .idle: silence = self.silence.idle
        }
        if isPaced {
            deadline.set(clock.keep(at: session.now, silence: silence) { moved })
        } else {
            clock.stop()
            deadline.set(afterNanoseconds: silence)
        }
    }

    private func timedOut() {
        if let cacheLookup { return cacheLookup.answered(nil) }
        if clock.isRunning {
            switch clock.judge(at: session.now, moved: moved) {
            case .onTime(let next): return deadline.set(next)
            case .slow: return dripped()
            case .silent: break
            }
        }
        guard var timeouts = destination?.terms.timeouts else { return }
        if let timeout = rules?.timeout {
            timeouts.firstByte = timeout
            timeouts.idleClient = timeout
        }
        if let admission, admission.isWaiting {
            return happened(
                notAdmitted(
                    "\(admission.limit) exchanges with the host are in flight (session.max_active), and none ended "
                        + "within \(timeouts.firstByte)"))
        }
        switch state.patience {
        case .unlimited: break
        case .firstByte: happened(.deadline, because: .noResponse(after: timeouts.firstByte))
        case .idle where state.phase == .awaiting:
            happened(.deadline, because: .requestStalled(after: timeouts.idleClient))
        case .idle: happened(.deadline, because: .nothingMoved(after: timeouts.idleClient))
        }
    }

    // MARK: The upstream

    func open(fresh: Bool) -> ExchangeState.Event? {
        dropUpstream()
        deadline.clear()
        if let rules, rules.takesTurns { return obtainInTurn(rules, fresh: fresh) }
        return connect(fresh: fresh)
    }

    func connect(fresh: Bool) -> ExchangeState.Event? {
        guard let destination else { return nil }
        if let upstream = atHand.take(), upstream.facts.connection?.isOver != true { return start(on: upstream) }
        if !fresh,
            let idle = destination.origin.lease(
                for: method, at: session.unixTime(), within: destination.target.reach, connectionNeed)
        {
            return start(on: idle)
        }
        attempt = session.connector.obtain(
            to: destination.target, timeouts: destination.terms.timeouts, dscp: rules?.session.serviceType.dscp ?? 0,
            connectionNeed
        ) { [weak self] result, isFirst in
            guard let self else { return }
            whileHeld { self.attempted(result, isFirst: isFirst, to: destination) }
        }
        return nil
    }

    private func attempted(
        _ result: Result<UpstreamConnection, UpstreamFailure>, isFirst: Bool, to destination: Destination
    ) {
        attempt = nil
        if isFirst { downstream.guide.attempted(result, to: destination) }
        switch result {
        case .success(let connection):
            guard let upstream = connection.lease() else {
                return happened(
                    .upstreamFailed(isFinal: false),
                    because: .upstreamClosed("closed the new connection before it was used"))
            }
            happened(start(on: upstream))
        case .failure(let failure):
            if let stored = standIn(for: failure) { return happened(start(on: stored)) }
            happened(.upstreamFailed(isFinal: failure.isFinal), because: .unreachable(failure))
        }
    }

    func start(on upstream: any Upstream) -> ExchangeState.Event? {
        let upstream = cacheUse.map { CachingUpstream(upstream, for: $0, session: session) } ?? upstream
        upstream.begin(for: self)
        let facts = upstream.facts
        if let connection = facts.connection {
            connection.mark(rules?.session.serviceType.dscp ?? 0)
            record.connected(connection, at: session.now)
        }
        self.upstream = upstream
        // Others may share its connection.
        if admission != nil, rules?.session.maxActive == nil, facts.connection is HTTP2Upstream { leaveTurn() }
        return .upstreamReady(reused: facts.isReused)
    }

    // MARK: End

    private func finish() {
        guard let upstream = upstream.take(), let downstream, let idle = destination?.terms.idleUpstreamNanoseconds
        else { return }
        countBytes()
        let kept = upstream.end(.finished(requestSent: state.request == .sent, idleNanoseconds: idle))
        end(.finished(keeping: kept), for: downstream)
    }

    private func becomeRelay() {
        guard let connection = upstream.take()?.end(.switched) else {
            // Without a descriptor for it.
            return cut(.reset)
        }
        record.status = 101
        deadline.clear()
        clear()
        downstream.exchangeEnded(.switched(connection))
    }

    private func refuse(_ fault: ExchangeState.Fault) {
        guard let destination, let downstream else { return }
        let failure = failure ?? .upstreamClosed("closed the connection")
        dropUpstream()
        record.refused(downstream.guide.refusal(for: failure, to: destination))
        end(.refused(failure, destination), for: downstream)
    }

    private func cut(_ how: Cut) {
        record.failed(failure?.cause ?? "")
        countBytes()
        dropUpstream()
        end(.cut(how, because: failure), for: downstream)
    }

    private func countBytes() {
        record.bytesDown = responseSink?.carried ?? 0
        record.bytesUp = requestSink?.carried ?? 0
    }

    func dropUpstream() {
        guard let upstream = upstream.take() else { return }
        _ = upstream.end(.abandoned)
    }

    /// The task is completed here and nowhere else.
    private func end(_ ending: ExchangeEnding, for downstream: any Downstream) {
        deadline.clear()
        attempt.take()?.cancel()
        clear()
        session.complete(&record)
        downstream.exchangeEnded(ending)
    }

    private func clear() {
        requestBody = nil
        requestSink = nil
        responseBody = nil
        responseSink = nil
        destination = nil
        if replay != nil { replay = nil }
        if failure != nil { failure = nil }
        if let resumption = resumption.take() { resumption.pause.clear() }
        guard rules != nil || itinerary != nil else { return }
        leaveTurn()
        giveBackAtHand()
        rules = nil
        undecided = nil
        inspection = nil
        throttle = nil
        verdict = nil
        cacheUse = nil
        cacheLookup = nil
        itinerary = nil
    }
}
