import EventLoop
import HTTPWire
import Serialization
import Transport

/// One request with its response, between the two doors: does what ``ExchangeState`` says. Whoever asks uses the
/// same object for all its exchanges, one after the other.
///
/// Whatever happens, an exchange that has begun ends with one call of ``Downstream/exchangeEnded(_:)``, before
/// which its task is completed once.
package final class Exchange: UpstreamReceiver {
    /// Who asked; set once, before the first exchange.
    // unowned: the downstream keeps the exchange, and ``whileHeld(_:)`` retains it during calls from elsewhere.
    @exclusivity(unchecked) package unowned var downstream: (any Downstream)!
    let session: LoopSession
    // What is read and stored whole, or changed by code that calls nobody, can't be accessed twice at a time:
    // to check that would cost more than the access.
    @exclusivity(unchecked) package private(set) var state = ExchangeState()
    /// What is told of the task that the exchange is. The one who asks fills in what only he knows.
    package var record = TaskRecord()

    /// What has to be known of the request.
    @exclusivity(unchecked) var request = RequestTraits()
    @exclusivity(unchecked) var destination: Destination?
    @exclusivity(unchecked) var upstream: (any Upstream)?
    /// What shapes the request and judges the response; nil for hosts without rules.
    @exclusivity(unchecked) var rules: ExchangeRules?
    /// How long may pass without a byte: by these rules, or for lack of them where the request goes.
    @exclusivity(unchecked) var silence = Silence()
    /// Runs while a body is on its way.
    @exclusivity(unchecked) var clock = BodyClock(rate: nil)
    /// Set where only so many exchanges with the host may be under way.
    var admission: Admission?
    /// The response to another's request may do, at the place that is asked now.
    var mayShare = false
    /// A connection for the first try, while that waits for its turn.
    var atHand: UpstreamConnection?
    /// Set while a rule may want the request sent in other words.
    @exclusivity(unchecked) var itinerary: Itinerary?
    /// Set while a response is under way that may be continued if it breaks off.
    @exclusivity(unchecked) var resumption: Resumption?
    /// Set while a rule looks at the response's body.
    @exclusivity(unchecked) var inspection: ResponseInspection?
    /// Slows the request down, where a rule wants that.
    var throttle: RequestThrottle?
    /// What the head has left open, until the inspection begins.
    var verdict: HeadVerdict?
    private var attempt: UpstreamAttempt?
    /// The words for what the state machine is about to be told.
    var failure: ExchangeFailure?
    private(set) var cause = ""
    let deadline: Deadline

    package init(session: LoopSession) {
        self.session = session
        deadline = Deadline(loop: session.loop)
        deadline.bind(to: self) { exchange in exchange.whileHeld { exchange.timedOut() } }
    }

    package var isUnderWay: Bool { state.isUnderWay }

    /// What can be told of it now; nil if none is under way.
    package var summary: TaskSummary? {
        guard isUnderWay else { return nil }
        return TaskSummary(
            record, state: state.isSuspended ? .suspended : .running,
            phase: admission?.isWaiting == true ? "waiting for its turn" : state.words,
            up: downstream.requestCarried, down: bytesDown(upstream?.responseCarried ?? 0), now: session.now)
    }

    var retryLimits: RetryRule.Limits {
        rules.map { RetryRule.Limits(redirects: UInt8(clamping: $0.session.maxRedirects)) } ?? RetryRule.Limits()
    }

    // MARK: What is done

    /// Retains the downstream while a timer, an upstream or a post from another thread calls. The downstream may
    /// release itself and the exchange as soon as the exchange has ended.
    @inline(__always) func whileHeld(_ work: () -> Void) { withExtendedLifetime(downstream, work) }

    func happened(_ event: ExchangeState.Event) {
        let phase = state.phase
        switch state.received(event) {
        case .none: break
        case .wait: keepTime()
        case .open(let fresh): open(fresh: fresh)
        case .send: send()
        case .resend: resend()
        case .stopReadingRequest:
            downstream.wantsRead(false)
            keepTime()
        case .forwardInterim: forwardInterim()
        case .forwardFinal, .hold: forward(.final)
        case .askAgain: askAgain()
        case .reopen: reopen()
        case .takeUp: takeUp()
        case .judge: judgeBody()
        case .release: passResponse(readable: false)
        case .forwardUpgrade: forward(.upgrade)
        case .awaitHead: upstream?.wantsRead(true)
        case .pause: pause()
        case .goOn: goOn()
        case .finish: finish()
        case .becomeRelay: becomeRelay()
        case .refuse(let fault): refuse(fault)
        case .cut(let fault): cut(fault, within: phase)
        }
    }

    func happened(_ event: ExchangeState.Event, because failure: ExchangeFailure) {
        self.failure = failure
        cause = failure.cause
        happened(event)
    }

    func happened(_ event: ExchangeState.Event, cause: String) {
        self.cause = cause
        happened(event)
    }

    func clearDeadline() { deadline.clear() }

    func keepTime() {
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
            return notAdmitted(
                "\(admission.limit) exchanges with the host are under way (session.max_active), and none ended within "
                    + "\(timeouts.firstByte)")
        }
        switch state.patience {
        case .unlimited: break
        case .firstByte: happened(.deadline, because: .noResponse(after: timeouts.firstByte))
        case .idle where state.phase == .holding:
            happened(.deadline, because: .bodyBroke("nothing moved for \(timeouts.idleClient)"))
        case .idle where state.phase == .awaiting: happened(.deadline, because: .requestStalled(after: timeouts.idleClient))
        case .idle: happened(.deadline, cause: "nothing moved for \(timeouts.idleClient)")
        }
    }

    // MARK: The upstream

    func open(fresh: Bool) {
        dropUpstream()
        deadline.clear()
        if let rules, rules.takesTurns { obtainInTurn(rules, fresh: fresh) } else { connect(fresh: fresh) }
    }

    func connect(fresh: Bool) {
        guard let destination else { return }
        if let connection = atHand.take(), !connection.isOver { return start(on: connection) }
        if !fresh, let idle = destination.origin.lease(for: method, at: session.unixTime(), within: destination.target.reach) {
            return start(on: idle)
        }
        attempt = session.connector.connect(
            to: destination.target, timeouts: destination.terms.timeouts, dscp: rules?.session.serviceType.dscp ?? 0
        ) { [weak self] result in
            guard let self else { return }
            whileHeld { self.attempted(result, to: destination) }
        }
    }

    private func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {
        attempt = nil
        downstream.attempted(result, to: destination)
        switch result {
        case .success(let connection): start(on: connection)
        case .failure(let failure):
            happened(.upstreamFailed(isFinal: failure.isFinal), because: .unreachable(failure))
        }
    }

    func start(on connection: consuming UpstreamConnection) {
        connection.begin(for: self)
        connection.mark(rules?.session.serviceType.dscp ?? 0)
        record.connected(connection, at: session.now)
        let isReused = connection.isReused
        upstream = consume connection
        happened(.upstreamReady(reused: isReused))
    }

    // MARK: The request

    // Each step loads the doors once, and hands them on: each time that they are loaded references are counted.

    private func send() {
        guard let upstream, let destination, let downstream else { return }
        session.headScratch.removeAll(keepingCapacity: true)
        let edits = rules == nil ? HeadEdits() : requestEdits()
        downstream.withRequest {
            upstream.writeHead(of: $0, to: destination, via: destination.via, edits: edits, into: &session.headScratch)
        }
        if rules != nil { slowDown(upstream, headLength: session.headScratch.count) }
        downstream.beginRequest(
            head: &session.headScratch, replayLimit: mayBeSentAgain(over: upstream) ? destination.terms.limits.replayBody : 0)
        upstream.wantsRead(true)
        passRequest(of: downstream, to: upstream, readable: false)
    }

    /// Whether what is sent is to be kept. Of a GET that is the head, by which a download can be continued.
    private func mayBeSentAgain(over upstream: any Upstream) -> Bool {
        if itinerary != nil { return true }
        return request.method.isIdempotent && (upstream.isReused || request.method == .get)
    }

    private func resend() {
        if let upstream, let destination {
            if state.asksForRest, let resumption {
                askForRest(over: upstream, resumption, to: destination)
            } else if let itinerary, itinerary.isDue {
                send(itinerary, over: upstream, to: destination)
            } else {
                downstream.rewindRequest()
            }
        }
        if rules != nil, let upstream { slowDown(upstream, headLength: 0) }
        upstream?.wantsRead(true)
        passRequest(readable: false)
    }

    /// Sends the request of the itinerary in the place of the one that was sent.
    private func send(_ itinerary: Itinerary, over upstream: any Upstream, to destination: Destination) {
        itinerary.isDue = false
        session.headScratch.removeAll(keepingCapacity: true)
        upstream.writeHead(
            of: itinerary.request.view, to: destination, via: destination.via, edits: requestEdits(),
            into: &session.headScratch)
        downstream.beginAgain(head: &session.headScratch, keepsBody: itinerary.keepsBody)
    }

    /// Holds the request back as a rule wants (`throttle`).
    private func slowDown(_ upstream: any Upstream, headLength: Int) {
        throttle = rules?.request.throttle.map { rule in
            RequestThrottle(rule, sink: upstream, headLength: headLength, loop: session.loop, owner: self) { exchange in
                exchange.whileHeld { exchange.passRequest(readable: false) }
            }
        }
    }

    func passRequest(readable: Bool) {
        guard let upstream, let downstream else { return }
        passRequest(of: downstream, to: upstream, readable: readable)
    }

    private func passRequest(of downstream: any Downstream, to upstream: any Upstream, readable: Bool) {
        guard state.passesRequest else { return }
        let outcome =
            if let throttle {
                downstream.passRequest(to: throttle, readable: readable)
            } else {
                downstream.passRequest(to: upstream, readable: readable)
            }
        switch outcome {
        case .waiting: happened(.requestPaused)
        case .blocked:
            happened(.requestStalled)
            // A pause that a rule asks for is nobody's delay, however long it is.
            if let throttle, throttle.isPausing { deadline.clear() }
        case .ended:
            downstream.wantsRead(true)
            if !state.asksForRest { record.requestSent(at: session.now) }
            happened(.requestSent)
        case .truncated: downstreamIsGone("the client ended in the middle of the request")
        case .sourceFailed(let error): downstreamIsGone(error.description)
        case .sinkFailed: happened(.requestRejected)
        case .malformed(let error): happened(.requestMalformed, because: .badRequest(error))
        }
    }

    func downstreamIsGone(_ why: String) {
        happened(.downstreamGone, cause: "client: \(why)")
    }

    // MARK: The end

    private func finish() {
        guard let upstream = upstream.take(), let downstream, let idle = destination?.terms.idleUpstreamNanoseconds
        else { return }
        record.bytesDown = bytesDown(upstream.responseCarried)
        record.bytesUp = downstream.requestCarried
        let kept = upstream.finish(requestSent: state.request == .sent, idleNanoseconds: idle)
        end(.finished(keeping: kept), for: downstream)
    }

    private func becomeRelay() {
        guard let upstream else { return }
        self.upstream = nil
        record.status = 101
        deadline.clear()
        if rules != nil || itinerary != nil { dropRules() }
        destination = nil
        if resumption != nil { dropResumption() }
        downstream.exchangeEnded(.switched(upstream.surrender()))
    }

    private func refuse(_ fault: ExchangeState.Fault) {
        guard let destination, let downstream else { return }
        let failure = failure ?? .upstreamClosed("broke off")
        dropUpstream()
        record.refused(downstream.refusal(for: failure, to: destination))
        end(.refused(failure, destination), for: downstream)
    }

    private func cut(_ fault: ExchangeState.Fault, within phase: ExchangeState.Phase) {
        record.failed(cause)
        let hasPassedAll = phase == .responding && upstream?.hasPassedAll == true || state.asksForRest
        let isDelivered = fault != .downstreamGone && hasPassedAll && inspection?.isReleasing != true
        record.bytesDown = bytesDown(upstream?.responseCarried ?? 0)
        record.bytesUp = downstream.requestCarried
        dropUpstream()
        end(.cut(isDelivered ? .delivered : .reset), for: downstream)
    }

    /// Of the response, that were passed on.
    /// - Parameter now: over the connection in use.
    func bytesDown(_ now: UInt64) -> UInt64 {
        guard let resumption else { return now }
        return resumption.carried + (resumption.isBetweenConnections ? 0 : now)
    }

    func dropUpstream() {
        upstream.take()?.abandon()
    }

    private func dropRules() {
        leaveTurn()
        giveBackAtHand()
        rules = nil
        inspection = nil
        throttle = nil
        verdict = nil
        itinerary = nil
    }

    private func dropResumption() {
        resumption?.pause.clear()
        resumption = nil
    }

    /// The task is completed here and nowhere else.
    private func end(_ ending: ExchangeEnding, for downstream: any Downstream) {
        deadline.clear()
        attempt.take()?.cancel()
        if rules != nil || itinerary != nil { dropRules() }
        destination = nil
        if resumption != nil { dropResumption() }
        if failure != nil { failure = nil }
        session.complete(&record)
        downstream.exchangeEnded(ending)
    }
}
