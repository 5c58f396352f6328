package import PinproxyEventLoop
package import PinproxyHTTP2
import PinproxyHTTPWire
package import PinproxyTransport

/// A stream that carries another protocol: a WebSocket, or a tunnel. It carries them to and from a socket, at a copy's
/// cost, for what carries bytes between sockets.
package final class HTTP2StreamSocket {
    /// The socket's far end, for one owner.
    package let outside: ByteStream
    private let stream: HTTP2Stream
    private let inside: ByteStream
    private let received: MessagePipe
    private let sent: HTTP1Outlet
    private var ended: (() -> Void)?
    private var hasCarriedIn = false
    private var hasCarriedOut = false

    /// - Parameter ended: called once, when both directions have ended or the stream was reset.
    package init(_ stream: HTTP2Stream, loop: EventLoop, ended: @escaping () -> Void) throws(SystemError) {
        let pair = try Socket.pair()
        inside = ByteStream(loop: loop, descriptor: Descriptor(owning: pair.0))
        outside = ByteStream(loop: loop, descriptor: Descriptor(owning: pair.1))
        self.stream = stream
        self.ended = ended
        let slabs = stream.connection.slabs
        received = MessagePipe(.requests, on: inside, received: ByteBuffer(slabs: slabs))
        received.begin(head: 0, framing: .untilClose)
        sent = HTTP1Outlet(inside, slabs: slabs)
        sent.begin(inChunks: false, from: stream) { _ in }
        inside.owner = self
        // The stream keeps this object until it is done.
        stream.hand(to: self)
        // Socket pairs know no reset.
        outside.aborted = { [weak self] in self?.end(.cancel) }
        inside.wantsRead = true
        if stream.hasArrived { carryIn(readable: false) }
    }

    /// Moves bytes from the peer to the socket.
    private func carryIn(readable: Bool) {
        guard ended != nil, !hasCarriedIn else { return }
        switch stream.move(to: sent, readable: readable) {
        case .waiting: if (try? sent.flush()) == nil { end(.cancel) }
        case .blocked: break
        case .ended:
            hasCarriedIn = true
            inside.endWriting()
            endIfDone()
        case .truncated, .sourceFailed, .failed, .sinkFailed, .malformed: end(.cancel)
        }
    }

    /// Moves bytes from the socket to the peer.
    private func carryOut(readable: Bool) {
        guard ended != nil, !hasCarriedOut else { return }
        switch received.move(to: stream, readable: readable) {
        case .waiting, .blocked: break
        case .ended:
            hasCarriedOut = true
            inside.wantsRead = false
            endIfDone()
        case .truncated, .sourceFailed, .failed, .sinkFailed, .malformed: end(.cancel)
        }
    }

    private func endIfDone() {
        if hasCarriedIn, hasCarriedOut { end(.noError) }
    }

    private func end(_ code: HTTP2ErrorCode) {
        guard let ended else { return }
        self.ended = nil
        // The stream may be this object's last holder.
        withExtendedLifetime(self) {
            stream.leave(code, delivering: code == .noError)
            inside.stop()
            ended()
        }
    }
}

extension HTTP2StreamSocket: HTTP2StreamDoor {
    package func received(_ place: HTTP2HeadPlace, ends: Bool) {}
    package func streamIsReadable() { if stream.failure == nil { carryIn(readable: true) } else { end(.cancel) } }
    package func streamIsWritable() { carryOut(readable: false) }
}

extension HTTP2StreamSocket: ByteStreamOwner {
    package func streamIsReadable(_ stream: ByteStream) { carryOut(readable: true) }
    package func streamIsWritable(_ stream: ByteStream) { carryIn(readable: false) }
}
