import EventLoop
import HTTPWire
import Session
import Transport

/// Answers that the proxy gives itself, and what follows an answer.
extension HTTP1Server {
    /// What this client would write into HTTPS_PROXY.
    var url: String {
        "\(stream.isSecure ? "https" : "http")://\(stream.localAddress.map { "\($0)" } ?? "127.0.0.1")"
    }

    /// Answers the request in hand with an error, and completes its task.
    func refuseRequest(_ error: ProxyError) {
        complete(with: error)
        let keeps = error.keepsConnection && head.bodyLength == .none && framing.keepsAlive
        if keeps { dropHead() }
        refuse(error, method: head.method, keepsConnection: keeps)
    }

    /// The same, and the end of the connection.
    func refuseForGood(_ error: ProxyError) {
        complete(with: error)
        refuse(error, method: head.method, keepsConnection: false)
    }

    /// What has come can't be understood, or isn't whole.
    func refuse(_ error: ProxyError) {
        prefersHTML = false
        exchange.record.began(number: session.takeNumber(), at: session.now)
        deadline.clear()
        phase = .held
        handler.receivedUnreadable(error, by: self)
    }

    /// Answers that with an error, and ends the connection.
    func refuseUnreadable(_ error: ProxyError) {
        complete(with: error)
        refuse(error, method: .get, keepsConnection: false)
    }

    func complete(with error: ProxyError) {
        exchange.record.refused(error.refusal)
        handler.refused(error)
        session.complete(&exchange.record)
    }

    /// Answers with an error; nothing of a response has been sent yet.
    func refuse(_ error: ProxyError, method: Method, keepsConnection: Bool) {
        let keeps = keepsConnection && !session.isDraining
        let bytes = error.response(to: method, acceptsHTML: prefersHTML, keepsConnection: keeps)
        answer(bytes, then: keeps ? .nextRequest : .linger)
    }

    package func answer(_ bytes: [UInt8], then next: AfterAnswer) {
        // The request isn't sent any more: what was kept of it is given back.
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

    // MARK: After an exchange

    /// Nothing is under way; the last byte of the answer has been written.
    func awaitNextRequest() {
        guard !(hasEnded && requests.isEmpty) else { return linger() }
        lastUsed = session.now
        phase = .awaitingRequest
        stream.wantsRead = true
        deadline.set(afterNanoseconds: settings.requestNanoseconds)
        if requests.isEmpty {
            requests.rest()
            if !stream.holdsBytes { return }
        }
        // Pipelined requests wait for their turn of the loop, so that a long row of them starves no one.
        session.loop.afterThisTurn { [weak self] in
            guard let self, isAwaitingRequest else { return }
            if !requests.isEmpty { nextRequest() }
            if isAwaitingRequest, stream.holdsBytes { receiveRequest() }
        }
    }

    /// The stream becomes the owner's within an exchange.
    package func lend() {
        phase = .lent
        deadline.clear()
    }

    /// Receives, within bounds, what the client sends before its turn.
    func receiveAhead() -> StreamError? {
        switch requests.receive(limit: SlabPool.slabSize) {
        case nil: stream.wantsRead = false
        case .received?: break
        case .blocked?: requests.rest()
        case .ended?:
            hasEnded = true
            stream.wantsRead = false
        case .failed(let error)?: return error
        }
        return nil
    }
}
