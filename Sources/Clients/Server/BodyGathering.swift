import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// Gathers the body of a request that a rule rewrites.
extension ServerDoor {
    /// Gathers the request's body; a client that expects `100 Continue` gets it.
    /// - Parameters:
    ///   - limit: bytes that are gathered at most.
    ///   - rate: the least; nil: any.
    ///   - done: called once, perhaps before this returns, unless the connection ends before. The request is held
    ///     again.
    final func gatherBody(limit: Int, rate: MinimumRate?, _ done: @escaping (BodyCollector.Outcome) -> Void) {
        let collector = BodyCollector(head.bodyLength, limit: limit, from: session.slabs.budget)
        if let refusal = collector.refusal { return done(refusal) }
        // The buffer drops the head once the body is read.
        made = (readRequest { OwnedRequest($0) }, HeldBody())
        gathering = (collector, BodyClock(rate: rate), done)
        beginGathering()
        gather(readable: false)
        if gathering != nil, head.expectsContinue, collector.carried == 0 { sendContinue() }
    }

    final func gather(readable: Bool) {
        guard let collector = gathering?.collector else { return }
        keepGatheringTime()
        switch receivedBody.move(to: collector, readable: readable) {
        case .waiting: break
        case .ended: endGathering(collector.whole)
        case .malformed(let error): endGathering(.malformed(error))
        case .blocked: if let refusal = collector.refusal { endGathering(refusal) }
        case .truncated(let why): handler.clientHasGone(why)
        case .sourceFailed(let error), .sinkFailed(let error): handler.clientHasGone(error.description)
        case .failed(let failure): handler.clientHasGone(failure.cause)
        }
    }

    private func keepGatheringTime() {
        guard let received = gathering?.collector.carried,
            let next = gathering?.clock.keep(at: session.now, silence: settings.idleNanoseconds, moved: { received })
        else { return }
        deadline.set(next)
    }

    final func gatheringTimedOut() {
        guard let received = gathering?.collector.carried, let rate = gathering?.clock.rate,
            let verdict = gathering?.clock.judge(at: session.now, moved: received)
        else { return refuseForGood(.requestStalled(after: settings.idle)) }
        switch verdict {
        case .onTime(let next): deadline.set(next)
        case .slow: refuseForGood(.requestDripped(rate))
        case .silent: refuseForGood(.requestStalled(after: settings.idle))
        }
    }

    final func resumeGathering() {
        guard gathering != nil else { return }
        gathering?.clock.stop()
        wantsRead(true)
        gather(readable: false)
    }

    private func endGathering(_ outcome: BodyCollector.Outcome) {
        guard let done = gathering?.done else { return }
        gathering = nil
        deadline.clear()
        hold()
        if isHeld { done(outcome) }
    }
}
