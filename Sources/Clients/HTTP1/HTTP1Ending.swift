import EventLoop
import Session
import Transport

/// The ways in which a connection ends.
extension HTTP1Server {
    /// Ends this side and waits a little for the client's, reading away what it still sends: closing
    /// with unread bytes would reset the connection and could destroy the answer on its way.
    func linger() {
        stream.endWriting()
        awaitEnd()
    }

    private func awaitEnd() {
        if hasEnded { return close() }
        phase = .lingering
        stream.wantsRead = true
        deadline.set(afterNanoseconds: Self.lingerNanoseconds)
        if stream.holdsBytes { discard() }
    }

    /// Ends a response that was cut short: what was written still arrives, and can't pass for the whole.
    /// - Parameter isFramed: the client knows the body's end by its length or its chunks; else only a reset
    ///   tells that something is missing, and it has to wait until all has arrived, which it would destroy.
    func breakOff(isFramed: Bool) {
        if isFramed {
            stream.endAbruptly()
            awaitEnd()
        } else {
            stream.wantsRead = false
            resetWhenDelivered(DeliveryWatch(at: session.now))
        }
    }

    func resetWhenDelivered(_ before: DeliveryWatch) {
        var delivery = before
        let isOver = delivery.isOver(on: stream, at: session.now, patience: settings.idleNanoseconds)
        phase = .breakingOff(delivery)
        if isOver { abort() } else { deadline.set(afterNanoseconds: DeliveryWatch.interval) }
    }

    func discard() {
        repeat {
            requests.skip(requests.count)
            requests.rest()
            switch requests.receive(limit: SlabPool.slabSize) {
            case .received?: continue
            case .blocked?: return requests.rest()
            case .ended?, .failed?, nil: return close()
            }
        } while stream.holdsBytes
    }

    /// The proxy stops: what is under way goes on, what rests goes.
    /// - Parameter nanoseconds: how long a connection that was used a moment ago gets for one more request: it
    ///   may be on its way already.
    func drain(lastChance nanoseconds: UInt64) {
        guard isAwaitingRequest else { return }
        let rested = session.now - lastUsed
        if requests.isEmpty, rested > nanoseconds { return close() }
        deadline.set(afterNanoseconds: nanoseconds)
    }

    /// Ends whatever is under way.
    func stop(_ cause: String) {
        if exchange.isUnderWay { exchange.cancel(cause) }
        abort()
    }

    /// Closes cleanly.
    package func close() {
        if isClosed { return }
        stream.sayGoodbye()
        leave()
    }

    /// Closes so that the client sees a break, not an end.
    package func abort() {
        if isClosed { return }
        stream.abort()
        leave()
    }

    /// Whoever had the stream has closed it.
    func leave() {
        if isClosed { return }
        assert(!exchange.isUnderWay, "the owner would be told of the exchange's end")
        phase = .closed
        gathering = nil
        deadline.clear()
        stream.stop()
        owner.closed(self)
    }
}
