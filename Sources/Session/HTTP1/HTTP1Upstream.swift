package import HTTPWire
package import TLS
package import Transport

/// The far door of an exchange whose origin speaks HTTP/1.1.
extension UpstreamConnection: Upstream {
    package func begin(for receiver: any UpstreamReceiver) {
        self.receiver = receiver
        exchanges += 1
        parser = nil
    }

    // MARK: The request's way up

    package func write(_ count: Int, from buffer: inout ByteBuffer) -> WriteOutcome { stream.write(count, from: &buffer) }

    package func writeHead(
        of request: borrowing RequestView, to destination: Destination, via: ViaPseudonym?, edits: HeadEdits,
        into head: inout [UInt8]
    ) {
        if let parentHop {
            var edits = edits
            edits.append(parentHop.edits)
            write(request, .absoluteForm, to: destination, via: via, edits: edits, into: &head)
        } else {
            write(request, .originForm, to: destination, via: via, edits: edits, into: &head)
        }
    }

    private func write(
        _ request: borrowing RequestView, _ target: TargetRewrite, to destination: Destination, via: ViaPseudonym?,
        edits: HeadEdits, into head: inout [UInt8]
    ) {
        if request.head.authenticatesConnection(in: request.bytes) { isPersonal = true }
        HeadWriter.write(
            request: request.head, from: request.bytes, target: target, authority: destination.authority,
            defaultPort: destination.defaultPort, via: via, forwardUpgrade: request.head.wantsUpgrade, edits: edits, into: &head)
    }

    // MARK: The response's way down

    package func wantsRead(_ wanted: Bool) { stream.wantsRead = wanted }

    package var holdsBytes: Bool { stream.holdsBytes }

    package func receiveHead(of method: Method, limit: Int, began: () -> Void) -> ResponseHeadProgress {
        if parser == nil { parser = HeadParser(limit: limit) }
        switch responses.receive(from: stream, limit: limit) {
        case .received?:
            began()
            let progress = nextHead(of: method)
            if case .incomplete = progress { stream.confirmNow() }
            return progress
        case .blocked?:
            responses.rest()
            // A session ticket, or a part of a record. The response waits behind it where the origin writes without TCP_NODELAY.
            if stream.isSecure { stream.confirmNow() }
            return .incomplete
        case .ended?: return .ended("closed the connection")
        case .failed(let error)?: return .ended(error.description)
        case nil: return .tooLarge
        }
    }

    package func nextHead(of method: Method) -> ResponseHeadProgress {
        guard !responses.unread.isEmpty else { return .incomplete }
        let progress = unsafe parser?.parseResponse(Span(_unsafeBytes: responses.unread), to: method, into: &response)
        switch progress {
        case .incomplete?, nil: return .incomplete
        case .tooLarge?: return .tooLarge
        case .tooManyFields?: return .tooManyFields
        case .malformed(let error)?: return .malformed(error)
        case .complete?: break
        }
        // One copy in hand, and not one for each that is asked of it.
        let head = response
        if head.isInterim { parser?.reset() }
        if unsafe head.authenticatesConnection(in: Span(_unsafeBytes: responses.unread)) { isPersonal = true }
        let length: UInt64? = if case .length(let length) = head.framing { length } else { nil }
        return .complete(
            ResponseTraits(
                status: head.status, isInterim: head.isInterim, isUpgrade: head.isUpgrade, bodyLength: length))
    }

    package func withResponse(_ body: (borrowing ResponseView) -> Void) {
        unsafe body(ResponseView(response, Span(_unsafeBytes: responses.unread)))
    }

    package func dropHead() { responses.skip(Int(response.length)) }

    package func beginResponse(head: inout [UInt8], _ kind: ResponseKind, coding: ResponseCoding) {
        responses.begin(
            head: &head, inPlaceOf: Int(response.length), framing: kind == .final ? response.framing : .none,
            dechunks: coding == .dechunked, chunks: coding == .chunked, salvages: true)
    }

    package func passResponse(to sink: any ByteSink, readable: Bool) -> MessagePipe.Outcome {
        let before = responses.carried
        let outcome = responses.pump(from: stream, to: sink, readable: readable)
        // Of two full segments the kernel confirms the second by itself: a body that flows costs nothing.
        if case .waiting = outcome, responses.carried - before < Self.twoSegments { stream.confirmNow() }
        return outcome
    }

    private static let twoSegments: UInt64 = 2 * 1448

    package var hasWholeResponse: Bool {
        guard case .length(let length) = response.framing else { return response.framing == .none }
        return UInt64(responses.unread.count) >= UInt64(response.length) + length
    }

    package var hasPassedAll: Bool { responses.isDrained }
    package var responseCarried: UInt64 { responses.carried }

    package func certificateRefusal(at time: UnixTime) -> ClientCertificateRefusal? { stream.certificateRefusal(at: time) }

    // MARK: The end

    package func finish(requestSent: Bool, idleNanoseconds: UInt64) -> UpstreamConnection? {
        receiver = nil
        let reusable =
            requestSent && response.keepsAlive && response.framing != .untilClose && responses.unread.isEmpty
            && !stream.holdsBytes
        if reusable, isPersonal { return self }
        if reusable { origin.giveBack(self, idleNanoseconds: idleNanoseconds) } else { close() }
        return nil
    }

    package func abandon() {
        receiver = nil
        stream.abort()
    }

    package func surrender() -> UpstreamConnection {
        receiver = nil
        return self
    }
}
