import PinproxyHTTPWire
import PinproxySession
import PinproxyTransport

/// The near door of an exchange with an HTTP/1.1 client.
extension HTTP1Server {
    func write(
        _ response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        let speaksChunks = head.version == .http11
        var inChunks = false
        switch kind {
        case .interim: persistence = .keepAlive
        case .upgrade: persistence = .upgrade
        case .final:
            let hasNoLength = response.head.bodyLength == .unknown
            inChunks = hasNoLength && speaksChunks
            bodyIsFramed = speaksChunks || response.head.bodyLength.bytes != nil
            let keeps =
                framing.keepsAlive && (requestSent || requests.isComplete) && !session.isDraining
                && !(hasNoLength && !speaksChunks) && !(hasEnded && requests.isEmpty)
            persistence = keeps ? .keepAlive : .close
            requests.dropHead()
        }
        answers.begin(inChunks: inChunks, from: body) { scratch in
            HeadWriter.write(
                response: response.head, from: response.bytes, clientVersion: head.version,
                connection: endsUnannounced(response.head.status, requestSent) ? .keepAlive : persistence,
                inChunks: inChunks, via: destination.via, edits: edits, into: &scratch)
        }
        return answers
    }

    /// After a failed expectation a client may send the body or a new request (RFC 9110 section 10.1.1), which is
    /// ambiguous. So the connection ends here, unannounced: curl would give up instead of asking again.
    private func endsUnannounced(_ status: Int, _ requestSent: Bool) -> Bool {
        status == 417 && head.expectsContinue && framing.keepsAlive && !requestSent
    }

    func follow(_ ending: ExchangeEnding) {
        if made != nil { made = nil }
        switch ending {
        case .finished(let kept):
            if let kept {
                if persistence == .keepAlive { owner.keep(kept) } else { kept.close() }
            }
            guard persistence == .keepAlive else { return linger() }
            // The client has sent its whole request, though the origin may not have read it.
            requests.abandon()
            awaitNextRequest()
        case .refused(let failure, let destination):
            answers.reset()
            refuse(.exchange(failure, destination, of: exchange.record), method: head.method, servesOn: false)
        case .cut(.delivered, _): interrupt(isFramed: bodyIsFramed)
        case .cut(.reset, _): abort()
        case .switched(let upstream):
            requests.dropHead()
            lend()
            owner.switched(to: upstream, by: self)
        }
    }
}
