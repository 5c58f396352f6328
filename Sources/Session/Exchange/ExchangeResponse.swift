import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxyTransport

extension Exchange {
    package func responseBegan() {
        record.firstByte(at: session.now)
        // It may have waited for the peer's settings.
        if request.wantsUpgrade, let upstream { noteStream(of: upstream) }
        happened(.responseBegan)
    }

    /// - Parameter readable: more input is known to be available. It is read once, however many heads come.
    func receiveHead(readable: Bool) {
        guard let upstream, let limit = destination?.terms.limits.responseHead else { return }
        guard undecided == nil else { return upstream.wantsRead(false) }
        let method = method
        var mayRead = readable
        while state.phase == .awaiting, self.upstream === upstream {
            let progress = upstream.receiveHead(of: method, limit: limit, readable: mayRead)
            mayRead = false
            // The client has the final head already, so interim responses are dropped.
            if state.asksForRest, case .complete(let head) = progress, head.isInterim { continue }
            guard let event = found(progress, on: upstream) else { return }
            happened(event)
        }
    }

    /// - Returns: nil if more input is needed.
    private func found(_ progress: ResponseHeadProgress, on upstream: any Upstream) -> ExchangeState.Event? {
        switch progress {
        case .incomplete: return nil
        case .complete(let response):
            if state.asksForRest { return .head(foundRest()) }
            if response.isInterim { return .head(.interim(isContinue: response.status == 100)) }
            if response.isUpgrade {
                if rules != nil, refusesUpgrade(response) { return .head(.unacceptable) }
                failure = .unaskedUpgrade
                return .head(.upgrade(isWanted: request.wantsUpgrade))
            }
            if request.needsUpgrade, (200..<300).contains(response.status) {
                failure = .upstreamClosed(
                    "answered with \(response.status) instead of changing to the requested protocol")
                return .upstreamEnded(.staleConnection, resendable: false)
            }
            record.began(response)
            if rules?.cache != nil { record.cache = upstream.facts.cache?.result }
            return finalHead(response, of: upstream, isNew: true).map { .head($0) }
        case .ended(let cause):
            failure = .upstreamClosed(cause)
            record.triesAgain(.staleConnection)
            // RFC 9110 section 9.2.2: a request kept for a redirect or challenge may not be safe to repeat.
            return .upstreamEnded(.staleConnection, resendable: method.isIdempotent && canResend)
        case .unprocessed(let cause):
            failure = .upstreamClosed(cause)
            record.triesAgain(.unprocessed)
            // Streams opened earlier may have been the last that the connection accepted.
            if state.refusals >= 2, !connectionNeed.isOfItsOwn { connectionNeed = .fresh }
            return .upstreamEnded(.unprocessed, resendable: canResend)
        case .needsOwnConnection(let cause):
            failure = .upstreamClosed(cause)
            connectionNeed = .own
            record.triesAgain(.ownConnection)
            let isPossible = destination?.target.protocols.contains(.http1) == true
            return .upstreamEnded(.ownConnection, resendable: isPossible && canResend)
        case .failed(let failure):
            self.failure = failure
            return .upstreamEnded(.staleConnection, resendable: false)
        case .notShared:
            failure = .upstreamClosed("could not share its response")
            return .notShared(resendable: canResend)
        case .unconfirmed:
            failure = .upstreamClosed("confirmed another response than the stored one")
            record.triesAgain(.unconfirmed)
            return .upstreamEnded(.unconfirmed, resendable: canResend)
        case .malformed(let error):
            failure = .badResponse(error)
            return .head(.malformed)
        case .tooManyFields:
            failure = .tooManyResponseFields
            return .head(.malformed)
        case .tooLarge:
            failure = .responseHeadTooLarge(destination?.terms.limits.responseHead ?? 0)
            return .head(.tooLarge)
        }
    }

    /// - Parameter isNew: false: the guide has decided about it.
    /// - Returns: nil while the guide decides.
    private func finalHead(
        _ response: ResponseTraits, of upstream: any Upstream, isNew: Bool
    ) -> ExchangeState.Head? {
        if let defect = unaskedPart(response, of: upstream) {
            failure = .badResponse(defect)
            return .malformed
        }
        if let itinerary {
            if isNew, !upstream.facts.isStored { tell(itinerary.url, of: upstream) }
            let head = followUp(response, itinerary)
            if downstream.guide.isDeciding {
                undecided = response
                upstream.wantsRead(false)
                return nil
            }
            if let head {
                if case .askAgain(let rule) = head { record.triesAgain(rule.reason) }
                return head
            }
        }
        prepareToResume(response, of: upstream)
        if clock.rate != nil, !response.isWhole { upstream.withResponse(exemptStreams) }
        return rules == nil ? .final : judgeHead()
    }

    private func tell(_ url: RequestURL, of upstream: any Upstream) {
        upstream.withResponse { downstream.guide.received($0, from: url) }
    }

    /// Continues after the guide's decision (``ExchangeGuide/isDeciding``). Harmless if the exchange has ended.
    package func decided() {
        guard let upstream, let response = undecided.take() else { return }
        whileHeld {
            guard let head = finalHead(response, of: upstream, isNew: false) else { return }
            upstream.wantsRead(true)
            happened(.head(head))
        }
    }

    /// The defect of a 206 that the request as sent didn't ask for.
    private func unaskedPart(_ response: ResponseTraits, of upstream: any Upstream) -> WireError? {
        guard response.status == 206 else { return nil }
        let wanted = wantedPart
        var defect: WireError?
        upstream.withResponse { defect = $0.head.defect(answering: wanted, in: $0.bytes) }
        return defect
    }

    /// The range that the request asked for, edits included.
    var wantedPart: WantedPart {
        var wanted = itinerary?.request.head.wantedPart ?? request.wantedPart
        if let rules { wanted.apply(rules.edits) }
        return wanted
    }

    func forwardInterim() -> ExchangeState.Event? {
        // The next search for a head drops it.
        request.takesInterim ? forward(.interim) : .responseEnded
    }

    func forward(_ kind: ResponseKind) -> ExchangeState.Event? {
        guard let upstream, let destination, let downstream else { return nil }
        if kind != .interim { forgetReplay() }
        noteLocation()
        let edits = rules == nil && itinerary == nil ? HeadEdits() : responseEdits
        var body = upstream.responseBody
        upstream.withResponse {
            if verdict != nil {
                inspect($0, from: body)
                if let inspection { body = inspection }
            }
            responseSink = downstream.respond(
                $0, kind, requestSent: state.request == .sent, to: destination, edits: edits, from: body)
        }
        responseBody = body
        return passResponse(readable: false)
    }

    func passResponse(readable: Bool) -> ExchangeState.Event? {
        guard let source = responseBody, let sink = responseSink else { return nil }
        let outcome = source.move(to: sink, readable: readable)
        if let inspection, let event = eventForwarding(inspection, outcome) { return event }
        switch outcome {
        case .waiting:
            do {
                return .responseMoved(isBlocked: !(try sink.flush()))
            } catch {
                return downstreamIsGone(error.description)
            }
        case .blocked: return .responseMoved(isBlocked: true)
        case .ended: return .responseEnded
        case .truncated(let why): return broke(.bodyBroke(why))
        case .sourceFailed(let error): return broke(.bodyBroke(error.description))
        case .failed(let failure): return broke(failure)
        case .malformed(let error):
            failure =
                sink.hasBegun ? .bodyBroke("the origin's body is malformed: \(error.message)") : .badResponse(error)
            return brokeForGood(sink)
        case .sinkFailed(let error): return downstreamIsGone(error.description)
        }
    }

    /// The response was interrupted; the remainder may be available.
    func broke(_ failure: ExchangeFailure) -> ExchangeState.Event {
        self.failure = failure
        return .responseBroke(begun: true, resumption: takeBreak())
    }

    func brokeForGood(_ sink: any BodySink) -> ExchangeState.Event {
        guard sink.hasBegun else { return .responseBroke(begun: false) }
        return .responseBroke(begun: true, isBlocked: (try? sink.flush()) != true)
    }

    /// Keeps the Location for ``responseEdits``.
    func noteLocation() {
        if let itinerary, !itinerary.hops.isEmpty { itinerary.location = try? location(relativeTo: itinerary.url) }
    }

    var responseEdits: HeadEdits {
        var edits = itinerary?.responseEdits ?? HeadEdits()
        if rules?.cache != nil { edits.append(cacheEdits) }
        return edits
    }

    /// The origin answers, so the request won't be sent again.
    func forgetReplay() {
        replay?.body.forget()
        if replay != nil { replay = nil }
    }
}
