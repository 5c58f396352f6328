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
    ///   - done: called once, perhaps before this returns, unless the connection ends before; what it is told isn't
    ///     ``BodyCollector/Progress/incomplete``, and the request is in the owner's hand again.
    func gatherBody(limit: Int, rate: MinimumRate?, _ done: @escaping (BodyCollector.Progress) -> Void) {
        let budget = session.slabs.budget
        guard let collector = BodyCollector(head.framing, limit: limit, from: budget) else {
            return done(.complete([], BodyReservation(of: budget, for: .request), taken: 0))
        }
        gathering = (collector, BodyClock(rate: rate), done)
        phase = .gathering
        stream.wantsRead = true
        gather()
        // Not for a body that is too long already, or that there is no room for.
        if case .gathering = phase, head.expectsContinue, gathering?.collector.hasBegun == false {
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

    func gather() {
        while case .gathering = phase {
            keepGatheringTime()
            let received = UnsafeRawBufferPointer(rebasing: requests.unread[headLength...])
            guard let progress = gathering?.collector.look(at: received) else { return }
            switch progress {
            case .incomplete(let taken): requests.remove(taken, at: headLength)
            case .complete(_, _, let taken):
                requests.remove(taken, at: headLength)
                return endGathering(progress)
            case .malformed, .tooLong, .noBudget: return endGathering(progress)
            }
            switch requests.receive(from: stream, limit: headLength + SlabPool.slabSize) {
            case .received(let count)?: gathering?.collector.received += UInt64(count)
            case .blocked?: return
            case .ended?: return owner.clientHasGone("the client ended in the middle of the request")
            case .failed(let error)?: return owner.clientHasGone(error.description)
            case nil: return endGathering(.tooLong)
            }
        }
    }

    private func keepGatheringTime() {
        guard let received = gathering?.collector.received,
            let next = gathering?.clock.keep(at: session.now, silence: settings.idleNanoseconds, moved: { received })
        else { return }
        deadline.set(next)
    }

    func gatheringTimedOut() {
        guard let received = gathering?.collector.received, let rate = gathering?.clock.rate,
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
        gather()
    }

    private func endGathering(_ progress: BodyCollector.Progress) {
        guard let done = gathering?.done else { return }
        gathering = nil
        // A client that sends its body and takes not even `100 Continue`: its answer would come after a part of that.
        guard answer.isEmpty else { return abort() }
        phase = .held
        deadline.clear()
        done(progress)
    }

    /// Puts another message in the place of the request in hand.
    /// - Parameters:
    ///   - body: goes after its head, before what else was received.
    ///   - reservation: the body's.
    func replaceRequest(with request: OwnedRequest, body: [UInt8] = [], holding reservation: BodyReservation? = nil) {
        requests.replaceFront(headLength, with: request.message + body, holding: reservation)
        head = request.head
        headLength = request.message.count
        noteTraits()
    }
}
