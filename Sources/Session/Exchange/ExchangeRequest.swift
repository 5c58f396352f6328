import PinproxyHTTPWire
import PinproxySerialization
import PinproxyTransport

extension Exchange {
    func send() -> ExchangeState.Event? {
        guard let upstream, let destination, let downstream else { return nil }
        requestBody = downstream.requestBody
        withRequest {
            keepForReplay($0, over: upstream)
            send($0, over: upstream, to: destination, edits: rules == nil ? HeadEdits() : requestEdits())
        }
        return passRequest(readable: false)
    }

    private func send(
        _ request: borrowing RequestView, over upstream: any Upstream, to destination: Destination, edits: HeadEdits
    ) {
        guard let body = requestBody else { return }
        var source = body
        if let rule = rules?.request.throttle {
            let throttle = RequestThrottle(rule, source: body, loop: session.loop, owner: self) { exchange in
                exchange.whileHeld { exchange.happened(exchange.passRequest(readable: false)) }
            }
            self.throttle = throttle
            source = throttle
            requestBody = throttle
        }
        requestSink = upstream.send(request, to: destination, edits: edits, from: source)
        noteStream(of: upstream)
    }

    func noteStream(of upstream: any Upstream) {
        if record.upstream?.hasStreams == true { record.streamOpened(upstream.facts.stream) }
    }

    /// Keeps a copy of a body that the downstream can't send again.
    private func keepForReplay(_ request: borrowing RequestView, over upstream: any Upstream) {
        guard self.request.hasBody, let body = requestBody, !body.canRewind,
            let limit = destination?.terms.limits.replayBody,
            itinerary != nil || self.request.method == .get || upstream.facts.mayRefuse
                || self.request.method.isIdempotent && upstream.facts.isReused
        else { return }
        let replayed = ReplayedBody(body, limit: limit, from: session.slabs.budget)
        replay = (OwnedRequest(request), replayed)
        requestBody = replayed
    }

    var canResend: Bool {
        guard request.hasBody, itinerary?.keepsBody != false else { return true }
        return replay?.body.canRewind ?? downstream.requestBody.canRewind
    }

    func resend() -> ExchangeState.Event? {
        guard let upstream, let destination else { return nil }
        if state.asksForRest, let resumption {
            askForRest(over: upstream, resumption, to: destination)
        } else {
            let body: any BodySource = replay?.body ?? downstream.requestBody
            body.rewind()
            requestBody = itinerary?.keepsBody == false ? HeldBody() : body
            let edits = rules == nil ? HeadEdits() : requestEdits()
            itinerary?.isDue = false
            withRequest { send($0, over: upstream, to: destination, edits: edits) }
        }
        return passRequest(readable: false)
    }

    /// Borrows the request in its form for the current hop.
    func withRequest(_ body: (borrowing RequestView) -> Void) {
        // A copy, since the view borrows from it.
        guard let owned = itinerary?.request ?? replay?.head else { return downstream.withRequest(body) }
        body(owned.view)
    }

    func passRequest(readable: Bool) -> ExchangeState.Event? {
        guard state.passesRequest, let source = requestBody, let sink = requestSink else { return nil }
        switch source.move(to: sink, readable: readable) {
        case .waiting:
            do {
                return try sink.flush() ? .requestPaused : .requestStalled
            } catch {
                return .requestRejected
            }
        case .blocked: return .requestStalled
        case .ended:
            downstream.wantsRead(true)
            if !state.asksForRest { record.requestSent(at: session.now) }
            return .requestSent
        case .truncated(let why): return downstreamIsGone(why)
        case .sourceFailed(let error): return downstreamIsGone(error.description)
        case .sinkFailed: return .requestRejected
        case .failed(let failure):
            self.failure = failure
            return .requestMalformed
        case .malformed(let error):
            failure = .badRequest(error)
            return .requestMalformed
        }
    }

    func downstreamIsGone(_ why: String) -> ExchangeState.Event {
        failure = .downstreamGone(why)
        return .downstreamGone
    }
}
