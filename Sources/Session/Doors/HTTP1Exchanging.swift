package import PinproxyHTTPWire
import PinproxyTransport

/// The upstream side of an exchange with an HTTP/1.1 origin.
extension HTTP1Upstream: Upstream {
    package func begin(for receiver: any UpstreamReceiver) {
        self.receiver = receiver
        exchanges += 1
        parser = nil
    }

    package var facts: UpstreamFacts { UpstreamFacts(isReused: isReused, scope: scope, connection: self) }

    // MARK: Request

    package func send(
        _ request: borrowing RequestView, to destination: Destination, edits: HeadEdits, from body: any BodySource
    ) -> any BodySink {
        if request.head.authenticatesConnection(in: request.bytes) { isPersonal = true }
        var edits = edits
        if let parentHop { edits.append(parentHop.edits) }
        requests.begin(inChunks: request.head.bodyLength == .unknown, from: body) { head in
            HeadWriter.write(
                request: request.head, from: request.bytes, target: parentHop == nil ? .originForm : .absoluteForm,
                authority: destination.authority, defaultPort: destination.defaultPort, via: destination.via,
                forwardUpgrade: request.head.wantsUpgrade, edits: edits, into: &head)
        }
        stream.wantsRead = true
        return requests
    }

    // MARK: Response

    package func wantsRead(_ wanted: Bool) { stream.wantsRead = wanted }

    package func receiveHead(of method: Method, limit: Int, readable: Bool) -> ResponseHeadProgress {
        responses.dropHead()
        if parser == nil { parser = HeadParser(limit: limit) }
        var progress = nextHead(of: method)
        var mayRead = readable || stream.holdsBytes
        while case .incomplete = progress, mayRead {
            switch responses.receive(limit: limit) {
            case .received?:
                receiver?.responseBegan()
                progress = nextHead(of: method)
                if case .incomplete = progress { stream.confirmNow() }
            case .blocked?:
                responses.releaseBuffer()
                // A session ticket, or part of a record. An origin without TCP_NODELAY holds its response back until
                // confirmed.
                if stream.isSecure { stream.confirmNow() }
                return .incomplete
            case .ended?: return ended("closed the connection")
            case .failed(let error)?: return ended(error.description)
            case nil: return .tooLarge
            }
            mayRead = stream.holdsBytes
        }
        return progress
    }

    private func ended(_ cause: String) -> ResponseHeadProgress {
        // In TLS 1.3 an origin rejects a client certificate only now.
        guard let time = receiver?.unixTime, let refusal = stream.certificateRefusal(at: time) else {
            return .ended(cause)
        }
        return .failed(.unreachable(.clientCertificate(refusal)))
    }

    private func nextHead(of method: Method) -> ResponseHeadProgress {
        guard !responses.isEmpty else { return .incomplete }
        let progress = responses.withUnread { parser?.parseResponse($0, to: method, into: &response) }
        switch progress {
        case .incomplete?, nil: return .incomplete
        case .tooLarge?: return .tooLarge
        case .tooManyFields?: return .tooManyFields
        case .malformed(let error)?: return .malformed(error)
        case .complete?: break
        }
        // One copy for all uses.
        let head = response
        framing = parser?.framing ?? framing
        if head.isInterim { parser?.reset() }
        if responses.withUnread({ head.authenticatesConnection(in: $0) }) { isPersonal = true }
        let isFinal = !head.isInterim && !head.isUpgrade
        responses.begin(head: Int(head.length), framing: isFinal ? framing.body : .none)
        return .complete(ResponseTraits(head, received: responses.count - Int(head.length)))
    }

    package func withResponse(_ body: (borrowing ResponseView) -> Void) {
        responses.withUnread { body(ResponseView(response, $0)) }
    }

    package var responseBody: any BodySource { responses }

    // MARK: End

    package func end(_ ending: UpstreamEnding) -> HTTP1Upstream? {
        receiver = nil
        switch ending {
        case .abandoned:
            stream.abort()
            return nil
        case .switched:
            responses.dropHead()
            return self
        case .unused(let idleNanoseconds):
            origin.giveBack(self, idleNanoseconds: idleNanoseconds)
            return nil
        case .finished(let requestSent, let idleNanoseconds):
            responses.dropHead()
            let reusable =
                requestSent && framing.keepsAlive && responses.isEmpty
                && !stream.holdsBytes
            if reusable, isPersonal { return self }
            if reusable { origin.giveBack(self, idleNanoseconds: idleNanoseconds) } else { close() }
            return nil
        }
    }
}
