import HTTPWire
import Session
import Transport

/// The near door of an exchange whose client speaks HTTP/1.1.
extension HTTP1Server: Downstream {
    // MARK: The request's way up

    func beginRequest(head scratch: inout [UInt8], replayLimit: Int) {
        requests.begin(head: &scratch, inPlaceOf: headLength, framing: head.framing, replayLimit: replayLimit)
        headTaken()
    }

    func beginAgain(head scratch: inout [UInt8], keepsBody: Bool) {
        requests.beginAgain(head: &scratch, keepsBody: keepsBody)
    }

    func withSentHead(_ body: (Span<UInt8>) -> Void) { requests.withSentHead(body) }

    func passRequest(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome {
        requests.pump(from: stream, to: sink, readable: readable)
    }

    var requestCarried: UInt64 { requests.carried }
    var canResendRequest: Bool { requests.canRewind }
    func rewindRequest() { requests.rewind() }
    func forgetReplay() { requests.forgetReplay() }
    func wantsRead(_ wanted: Bool) { stream.wantsRead = wanted }

    // MARK: The response's way down

    func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome { stream.write(count, from: &buffer) }

    func writeHead(
        of response: borrowing ResponseView, _ kind: ResponseKind, requestSent: Bool, to destination: Destination,
        edits: HeadEdits, into scratch: inout [UInt8]
    ) -> ResponseCoding {
        let speaksChunks = head.version == .http11
        let coding: ResponseCoding
        switch kind {
        case .interim:
            coding = .asReceived
            persistence = .keepAlive
        case .upgrade:
            coding = .asReceived
            persistence = .upgrade
        case .final:
            let framing = response.head.framing
            coding =
                switch framing {
                case .chunked where !speaksChunks: .dechunked
                case .untilClose where speaksChunks: .chunked
                default: .asReceived
                }
            let endsWithConnection = !speaksChunks && (framing == .untilClose || framing == .chunked)
            bodyIsFramed = speaksChunks || Self.hasLength(framing)
            let keeps =
                head.keepsAlive && (requestSent || requests.isComplete) && !session.isDraining && !endsWithConnection
                && !(hasEnded && requests.unread.isEmpty)
            persistence = keeps ? .keepAlive : .close
        }
        HeadWriter.write(
            response: response.head, from: response.bytes, clientVersion: head.version,
            connection: endsUnannounced(response.head.status, requestSent) ? .keepAlive : persistence,
            coding: coding, via: destination.via, edits: edits, into: &scratch)
        return coding
    }

    private static func hasLength(_ framing: BodyFraming) -> Bool { if case .length = framing { true } else { false } }

    /// A client whose expectation failed may send the body after all, or leave it out and ask again (RFC 9110
    /// section 10.1.1). Nobody can tell the one from the other, so the connection ends here, and no byte of a
    /// body is taken for a request. That isn't announced: curl would give up instead of asking again.
    private func endsUnannounced(_ status: Int, _ requestSent: Bool) -> Bool {
        status == 417 && head.expectsContinue && head.keepsAlive && !requestSent
    }

    // MARK: News

    func attemptReport() -> AttemptReport { owner.attemptReport() }

    func attempted(_ result: Result<UpstreamConnection, UpstreamFailure>, to destination: Destination) {
        owner.attempted(result)
    }

    func route(to url: RequestURL, isAbroad: Bool, for request: borrowing RequestView) -> RedirectRuling {
        owner.route(to: url, isAbroad: isAbroad, for: request)
    }

    func refusal(for failure: ExchangeFailure, to destination: Destination) -> TaskRecord.Refusal {
        let error = ProxyError.exchange(failure, destination)
        owner.refused(error)
        return error.refusal
    }

    func exchangeEnded(_ ending: ExchangeEnding) {
        switch ending {
        case .finished(let kept):
            if let kept {
                if persistence == .keepAlive { owner.keep(kept) } else { kept.close() }
            }
            guard persistence == .keepAlive else { return linger() }
            // The client sent its request to the end, though the origin may not have taken it: the next one follows.
            requests.abandon()
            awaitNextRequest()
        case .refused(let failure, let destination):
            refuse(.exchange(failure, destination), method: head.method, keepsConnection: false)
        case .cut(.delivered): breakOff(isFramed: bodyIsFramed)
        case .cut(.reset): abort()
        case .switched(let upstream):
            lend()
            owner.switched(to: upstream, by: self)
        }
    }
}
