import PinproxyEventLoop
import PinproxyHTTP2
import PinproxyTransport

/// The end of a connection that has something left to say.
struct HTTP2Parting {
    /// For the peer's end, after the last byte.
    static let patience: UInt64 = 5_000_000_000
    /// Bytes that are discarded meanwhile, at most.
    static let most = 1 << 20

    /// Set once all is written.
    var delivery: DeliveryWatch?
    var discarded = 0
}

extension HTTP2Connection {
    /// Writes what is queued. A server then awaits the peer's end, and discards what still comes: closing with unread
    /// bytes could destroy what was written, and with it the GOAWAY with the reason.
    func part() {
        guard parting.delivery == nil else { return }
        stream.wantsRead = false
        repeat {
            session.send(through: self)
            while session.nextEvent() != nil {}
            if output.isEmpty { break }
            switch stream.write(output.count, from: &output) {
            case .done: break
            case .blocked where session.role == .server:
                output.compact()
                return deadline.set(afterNanoseconds: idleNanoseconds)
            case .blocked, .failed: return finish()
            }
        } while session.wantsToSend
        output.releaseIfEmpty()
        guard session.role == .server else {
            stream.sayGoodbye()
            return finish()
        }
        parting.delivery = DeliveryWatch(at: loop.now)
        stream.endWriting()
        stream.wantsRead = true
        deadline.set(afterNanoseconds: HTTP2Parting.patience)
        if stream.holdsBytes { discard() }
    }

    func discard() {
        guard parting.delivery != nil, !isAbsorbing else { return }
        repeat {
            input.consume(input.count)
            switch stream.read(into: &input) {
            case .received(let count): parting.discarded += count
            case .blocked:
                input.releaseIfEmpty()
                return
            case .ended, .failed: return finish()
            }
        } while stream.holdsBytes && parting.discarded < HTTP2Parting.most
        input.consume(input.count)
        if parting.discarded >= HTTP2Parting.most { finish() }
    }

    /// A slow reader may take its time, as long as it takes something.
    func partingTimedOut() {
        guard parting.delivery?.isOver(on: stream, at: loop.now, patience: idleNanoseconds) == false else {
            return finish()
        }
        deadline.set(afterNanoseconds: HTTP2Parting.patience)
    }
}
