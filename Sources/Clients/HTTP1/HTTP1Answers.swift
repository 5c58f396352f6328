import PinproxyEventLoop
import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// Answers that the proxy gives itself, and what follows an answer.
extension HTTP1Server {
    /// The proxy's URL for this client.
    var url: String {
        "\(stream.isSecure ? "https" : "http")://\(stream.localAddress.map { "\($0)" } ?? "127.0.0.1")"
    }

    package func answer(_ bytes: [UInt8], then next: AfterAnswer) {
        // The request won't be sent: its copies are freed.
        gathering = nil
        made = nil
        answer.append(bytes)
        deadline.set(afterNanoseconds: settings.idleNanoseconds)
        writeAnswer(then: next)
    }

    func writeAnswer(then next: AfterAnswer) {
        phase = .answering(then: next)
        switch stream.write(answer.count, from: &answer) {
        case .blocked: return
        case .failed: return abort()
        case .done: answer.releaseIfEmpty()
        }
        switch next {
        case .nextRequest: awaitNextRequest()
        case .handOver:
            phase = .lent
            owner.handedOver(by: self)
        case .linger: linger()
        }
    }

    private static let continuation = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

    func beginContinue() {
        answer.append(Self.continuation)
        writeContinue()
    }

    func writeContinue() {
        guard !answer.isEmpty else { return }
        switch stream.write(answer.count, from: &answer) {
        case .blocked: break
        case .failed: abort()
        case .done: answer.releaseIfEmpty()
        }
    }

    // MARK: After an exchange

    /// The last byte of the answer has been written.
    func awaitNextRequest() {
        guard !(hasEnded && requests.isEmpty) else { return linger() }
        lastUsed = session.now
        phase = .awaitingRequest
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if requests.isEmpty {
            requests.releaseBuffer()
            if !stream.holdsBytes { return }
        }
        // Pipelined requests wait for the loop's next turn, for fairness.
        session.loop.afterThisTurn { [weak self] in
            guard let self, isAwaitingRequest else { return }
            if !requests.isEmpty { nextRequest() }
            if isAwaitingRequest, stream.holdsBytes { receiveRequest() }
        }
    }

    /// The owner takes the stream over within an exchange.
    package func lend() {
        phase = .lent
        deadline.clear()
    }

    /// Receives up to a slab of what the client sends early.
    func receiveAhead() -> StreamError? {
        switch requests.receive(limit: SlabPool.slabSize) {
        case nil: stream.wantsRead = false
        case .received?: break
        case .blocked?: requests.releaseBuffer()
        case .ended?:
            hasEnded = true
            stream.wantsRead = false
        case .failed(let error)?: return error
        }
        return nil
    }
}
