import EventLoop
import HTTPWire
import Session
import Transport

/// Rewrites requests before they are passed on.
extension HTTP1Server {
    /// Gathers the request's body; a client that expects `100 Continue` gets it.
    /// - Parameters:
    ///   - limit: bytes that are gathered at most.
    ///   - rate: the least; nil: any.
    ///   - done: called once, perhaps before this returns, unless the connection ends before. The request is held
    ///     again.
    func gatherBody(limit: Int, rate: MinimumRate?, _ done: @escaping (BodyCollector.Outcome) -> Void) {
        let collector = BodyCollector(head.bodyLength, limit: limit, from: session.slabs.budget)
        if let refusal = collector.refusal { return done(refusal) }
        // The buffer drops the head once the body is read.
        made = (readRequest { OwnedRequest($0) }, HeldBody())
        gathering = (collector, BodyClock(rate: rate), done)
        phase = .gathering
        gather(readable: false)
        if case .gathering = phase, head.expectsContinue, collector.carried == 0 {
            answer.append(Self.continuation)
            writeContinue()
        }
    }

    private static let continuation = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    func writeContinue() {
        guard !answer.isEmpty else { return }
        switch stream.write(answer.count, from: &answer) {
        case .blocked: break
        case .failed: abort()
        case .done: answer.releaseIfEmpty()
        }
    }

    func gather(readable: Bool) {
        guard let collector = gathering?.collector else { return }
        keepGatheringTime()
        switch requests.move(to: collector, readable: readable) {
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

    func gatheringTimedOut() {
        guard let received = gathering?.collector.carried, let rate = gathering?.clock.rate,
            let verdict = gathering?.clock.judge(at: session.now, moved: received)
        else { return refuseForGood(.requestStalled(after: settings.idle)) }
        switch verdict {
        case .onTime(let next): deadline.set(next)
        case .slow: refuseForGood(.requestDripped(rate))
        case .silent: refuseForGood(.requestStalled(after: settings.idle))
        }
    }

    func resumeGathering() {
        guard case .gathering = phase else { return }
        gathering?.clock.stop()
        stream.wantsRead = true
        gather(readable: false)
    }

    private func endGathering(_ outcome: BodyCollector.Outcome) {
        guard let done = gathering?.done else { return }
        gathering = nil
        // The client hasn't read even `100 Continue`: an answer would follow a part of it.
        guard answer.isEmpty else { return abort() }
        phase = .held
        deadline.clear()
        done(outcome)
    }

    /// - Parameter body: sent after the head; nil: the client's.
    func replaceRequest(with request: OwnedRequest, body: (any BodySource)? = nil) {
        made = (request, body ?? made?.body ?? requests)
        noteTraits()
    }
}
