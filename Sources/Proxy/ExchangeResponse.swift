import Configuration
import EventLoop
import HTTPWire
import Session
import Transport

/// The response's way: from the origin's first byte to the last one that the client takes.
extension Exchange {
    func receiveResponseHead() {
        guard let upstream else { return }
        repeat {
            let limit = snapshot.limits.responseHead
            switch upstream.responses.receive(from: upstream.stream, limit: limit) {
            case .received?: break
            case .blocked?: return upstream.responses.rest()
            case .ended?: return upstreamDied("closed the connection")
            case .failed(let error)?: return upstreamDied(error.description)
            case nil: return refuse(.responseHeadTooLarge(limit, host: host))
            }
            record.firstByte(at: worker.loop.now)
            client.requests.forgetReplay()
            parseResponseHead()
        } while phase == .awaitingResponse && upstream.stream.holdsBytes
    }

    func parseResponseHead() {
        while phase == .awaitingResponse, let upstream {
            let progress = unsafe parser.parseResponse(
                Span(_unsafeBytes: upstream.responses.unread), to: request.method, into: &response)
            switch progress {
            case .incomplete: return
            case .tooLarge: return refuse(.responseHeadTooLarge(snapshot.limits.responseHead, host: host))
            case .tooManyFields: return refuse(.tooManyResponseFields(host: host))
            case .malformed(let error): return refuse(.badResponse(error, host: host))
            case .complete: respond(on: upstream)
            }
        }
    }

    func respond(on upstream: UpstreamConnection) {
        if response.isInterim {
            parser.reset()
            if response.status == 100, requestWaitsForOrigin {
                expectsContinue = false
                requestWaitsForOrigin = false
                deadline.set(afterNanoseconds: worker.idleNanoseconds)
            }
            guard request.version == .http11 else {
                return upstream.responses.skip(Int(response.length))
            }
            phase = .interim
            writeResponseHead(on: upstream, connection: .keepAlive)
        } else if response.isUpgrade {
            guard request.wantsUpgrade, requestPassed else { return refuse(.unaskedUpgrade(host: host)) }
            phase = .switching
            writeResponseHead(on: upstream, connection: .upgrade)
        } else {
            record.status = response.status
            if unsafe response.authenticatesConnection(in: Span(_unsafeBytes: upstream.responses.unread)) {
                upstream.isPersonal = true
            }
            let wantsClose = response.framing == .untilClose || response.framing == .chunked
            keepsClient =
                request.keepsAlive && (requestPassed || client.requests.isComplete) && !worker.isDraining
                && !(client.hasEnded && client.requests.unread.isEmpty)
                && !(request.version == .http10 && wantsClose)
            phase = .relaying
            writeResponseHead(on: upstream, connection: keepsClient || endsUnannounced ? .keepAlive : .close)
        }
        pumpResponse(readable: false)
    }

    /// A client whose expectation failed may send the body after all, or leave it out and ask again (RFC 9110
    /// section 10.1.1). Nobody can tell the one from the other, so the connection ends here, and no byte of a
    /// body is taken for a request. That isn't announced: curl would give up instead of asking again.
    private var endsUnannounced: Bool {
        response.status == 417 && request.expectsContinue && !requestPassed
    }

    func writeResponseHead(on upstream: UpstreamConnection, connection: ClientPersistence) {
        let speaksChunks = request.version == .http11
        let isFinal = phase == .relaying
        let coding: ResponseCoding =
            switch response.framing {
            case .chunked where isFinal && !speaksChunks: .dechunked
            case .untilClose where isFinal && speaksChunks: .chunked
            default: .asReceived
            }
        let length = Int(response.length)
        worker.headScratch.removeAll(keepingCapacity: true)
        unsafe HeadWriter.write(
            response: response, from: Span(_unsafeBytes: upstream.responses.unread),
            clientVersion: request.version, connection: connection, coding: coding,
            via: snapshot.proxy.via, into: &worker.headScratch)
        upstream.responses.begin(
            head: &worker.headScratch, inPlaceOf: length, framing: isFinal ? response.framing : .none,
            dechunks: coding == .dechunked, chunks: coding == .chunked, salvages: true)
    }

    func pumpResponse(readable: Bool) {
        guard let upstream else { return }
        switch upstream.responses.pump(from: upstream.stream, to: client.stream, readable: readable) {
        case .waiting, .blocked: deadline.set(afterNanoseconds: worker.idleNanoseconds)
        case .ended: responseEnded(on: upstream)
        case .truncated: cut("the origin ended in the middle of the response")
        case .sourceFailed(let error): cut(error.description)
        case .malformed(let error) where upstream.responses.carried == 0:
            phase = .awaitingResponse
            refuse(.badResponse(error, host: host))
        case .malformed(let error): cut("the origin's body is malformed: \(error.message)")
        case .sinkFailed(let error): clientVanished(error.description)
        }
    }

    func responseEnded(on upstream: UpstreamConnection) {
        switch phase {
        case .interim:
            // The next head is looked for by the caller: a row of interim responses must not pile up calls.
            phase = .awaitingResponse
            upstream.stream.wantsRead = true
        case .switching:
            record.status = 101
            phase = .over
            deadline.clear()
            self.upstream = nil
            client.becomeRelay(with: upstream, record: record)
        case .relaying: finish(upstream)
        case .over, .connecting, .awaitingResponse: break
        }
    }
}
