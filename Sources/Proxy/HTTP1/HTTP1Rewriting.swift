import EventLoop
import HTTPWire
import Session
import Transport

/// Requests that are written anew before they are passed on, as if the client had sent them so.
extension HTTP1Server {
    /// Gathers the body of the request in hand. The client is told to send it, if it waits for that.
    /// - Parameters:
    ///   - limit: bytes that are gathered at most.
    ///   - rate: how fast it has to come; nil: as slowly as it likes.
    ///   - done: called once, perhaps before this returns, unless the connection ends before. The request is in the
    ///     owner's hand again.
    func gatherBody(limit: Int, rate: MinimumRate?, _ done: @escaping (BodyCollector.Outcome) -> Void) {
        let collector = BodyCollector(head.bodyLength, limit: limit, from: session.slabs.budget)
        if let refusal = collector.refusal { return done(refusal) }
        // The head in front of the body goes as soon as that is taken.
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
        case .truncated(let why): owner.clientHasGone(why)
        case .sourceFailed(let error), .sinkFailed(let error): owner.clientHasGone(error.description)
        case .failed(let failure): owner.clientHasGone(failure.cause)
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

    /// Goes on after reading was stopped.
    func resumeGathering() {
        guard case .gathering = phase else { return }
        gathering?.clock.stop()
        stream.wantsRead = true
        gather(readable: false)
    }

    private func endGathering(_ outcome: BodyCollector.Outcome) {
        guard let done = gathering?.done else { return }
        gathering = nil
        // A client that sends its body and takes not even `100 Continue`: its answer would come after a part of that.
        guard answer.isEmpty else { return abort() }
        phase = .held
        deadline.clear()
        done(outcome)
    }

    /// Puts another message in the place of the request in hand.
    /// - Parameter body: goes after its head; nil: the client's.
    func replaceRequest(with request: OwnedRequest, body: (any BodySource)? = nil) {
        made = (request, body ?? made?.body ?? requests)
        noteTraits()
    }
}
