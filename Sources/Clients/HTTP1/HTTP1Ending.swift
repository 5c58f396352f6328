import PinproxyEventLoop
import PinproxySession
import PinproxyTransport

extension HTTP1Server {
    /// Ends this side and discards what the client sends: closing with unread bytes could destroy the answer.
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

    /// Ends a truncated response: written bytes still arrive, and can't be taken for a complete response.
    /// - Parameter isFramed: by length or chunks; else only a reset shows the cut, and it waits until all has arrived.
    func interrupt(isFramed: Bool) {
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
            requests.releaseBuffer()
            switch requests.receive(limit: SlabPool.slabSize) {
            case .received?: continue
            case .blocked?: return requests.releaseBuffer()
            case .ended?, .failed?, nil: return close()
            }
        } while stream.holdsBytes
    }

    /// The proxy stops: idle connections are closed.
    /// - Parameter nanoseconds: for one more request on a recently used connection.
    func drain(lastChance nanoseconds: UInt64) {
        guard isAwaitingRequest else { return }
        let idle = session.now - lastUsed
        if requests.isEmpty, idle > nanoseconds { return close() }
        deadline.set(afterNanoseconds: nanoseconds)
    }

    func stop(_ cause: String) {
        if exchange.isInFlight { exchange.cancel(cause) }
        abort()
    }

    package func close() {
        if isClosed { return }
        stream.sayGoodbye()
        leave()
    }

    func reset() {
        if isClosed { return }
        stream.abort()
        leave()
    }

    func leave() {
        if isClosed { return }
        assert(!exchange.isInFlight, "the exchange would report its end to the owner")
        phase = .closed
        gathering = nil
        deadline.clear()
        stream.stop()
        owner.closed(self)
    }
}
